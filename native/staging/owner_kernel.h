#ifndef WORKBENCH_STAGING_OWNER_KERNEL_H_
#define WORKBENCH_STAGING_OWNER_KERNEL_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "staging/buffer_resource.h"
#include "staging/step/step_call.h"
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

// An op whose one input is an owner, for which it makes one call on the buffer that may wait.
class OwnerKernel : public tensorflow::AsyncOpKernel {
 public:
  explicit OwnerKernel(tensorflow::OpKernelConstruction* context)
      : AsyncOpKernel(context), address_(context) {}

  void ComputeAsync(tensorflow::OpKernelContext* context, DoneCallback done) override {
    Owner owner;
    OP_REQUIRES_OK_ASYNC(context, ReadOwner(context, &owner), done);
    tensorflow::core::RefCountPtr<BufferResource> resource;
    OP_REQUIRES_OK_ASYNC(context, address_.Find(context, &resource), done);
    Call(*resource->buffer(), owner,
         StepCall::Begin(context, resource->buffer(), std::move(done)));
  }

 protected:
  // `call` ends the op.
  virtual void Call(TensorBuffer& buffer, const Owner& owner,
                    const std::shared_ptr<StepCall>& call) const = 0;

 private:
  const BufferAddress address_;
};

}  // namespace workbench

#endif  // WORKBENCH_STAGING_OWNER_KERNEL_H_
