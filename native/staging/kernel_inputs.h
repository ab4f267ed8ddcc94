#ifndef WORKBENCH_STAGING_KERNEL_INPUTS_H_
#define WORKBENCH_STAGING_KERNEL_INPUTS_H_

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace workbench {

// Input 0 of most ops of a buffer.
struct Owner {
  int64_t token = 0;
  int64_t thread = 0;
};

inline absl::Status ReadOwner(tensorflow::OpKernelContext* context, Owner* owner) {
  const tensorflow::Tensor& input = context->input(0);
  if (input.dims() != 1 || input.dim_size(0) != 2) {
    return absl::InvalidArgumentError(absl::StrCat("owner has shape ", input.shape().DebugString(),
                                                   "; expected [2]: token and thread"));
  }
  const auto values = input.vec<int64_t>();
  *owner = {values(0), values(1)};
  return absl::OkStatus();
}

}  // namespace workbench

#endif  // WORKBENCH_STAGING_KERNEL_INPUTS_H_
