#ifndef WORKBENCH_COMBINE_ROW_RANGES_H_
#define WORKBENCH_COMBINE_ROW_RANGES_H_

// Threads to call combine.h on.

#include <cstdint>

#include "tensorflow/core/framework/op_kernel.h"
#include "threading/shared_work.h"

namespace workbench {

// Runs `part` over ranges of rows.
//
//   vectors: of all rows; row_bytes: of one vector.
void ByRowRanges(tensorflow::OpKernelContext* c, int64_t rows, int64_t vectors, int64_t row_bytes,
                 const Part& part);

// Runs `part` over ranges of unique ids. Each range passes over all `ids`, which is cheap beside
// summing its own; hence few ranges.
void ByUniqueRanges(tensorflow::OpKernelContext* c, int64_t ids, int64_t unique, int64_t dim,
                    const Part& part);

}  // namespace workbench

#endif  // WORKBENCH_COMBINE_ROW_RANGES_H_
