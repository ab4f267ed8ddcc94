#ifndef WORKBENCH_COMBINE_COMBINE_CALLS_H_
#define WORKBENCH_COMBINE_COMBINE_CALLS_H_

// What kernels that combine rows share: attributes, shapes, and threads to call combine.h on.

#include <cstdint>
#include <functional>
#include <string>

#include "combine/combine.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace workbench {

using Range = std::function<void(int64_t, int64_t)>;
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

// Runs `part` over ranges of rows on the intra-op threads.
//
//   vectors: of all rows; row_bytes: of one vector.
void ByRowRanges(tensorflow::OpKernelContext* c, int64_t rows, int64_t vectors, int64_t row_bytes,
                 const Range& part);

// Runs `part` over ranges of `count` on as many threads as the cost is worth: `of_thread` for each.
void ByCost(tensorflow::OpKernelContext* c, int64_t count, int64_t cost, int64_t of_thread,
            const Range& part);

// Runs `part` over ranges of unique ids. Each range passes over all `ids`, which is cheap beside
// summing its own; hence few ranges.
void ByUniqueRanges(tensorflow::OpKernelContext* c, int64_t ids, int64_t unique, int64_t dim,
                    const Range& part);

}  // namespace workbench

#endif  // WORKBENCH_COMBINE_COMBINE_CALLS_H_
