#ifndef WORKBENCH_COMBINE_COMBINE_CALLS_H_
#define WORKBENCH_COMBINE_COMBINE_CALLS_H_

// What kernels that combine rows share: attributes and shapes.

#include <cstdint>
#include <string>

#include "combine/combine.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace workbench {

// The attribute `combiner`.
absl::Status CombinerOf(tensorflow::OpKernelConstruction* c, Combiner* combiner);

// The error of an input of another shape than expected.
absl::Status WrongShape(const char* name, const tensorflow::Tensor& found,
                        const std::string& expected);

// All but the last of input `dense_shape`, which must be `rows` in all, then `dim`.
absl::Status CombinedShape(tensorflow::OpKernelContext* c, int64_t rows, int64_t dim,
                           tensorflow::TensorShape* shape);

// Whether a gradient is [..., dim] with this many rows.
absl::Status FitsRows(const tensorflow::Tensor& gradient, int64_t rows);

}  // namespace workbench

#endif  // WORKBENCH_COMBINE_COMBINE_CALLS_H_
