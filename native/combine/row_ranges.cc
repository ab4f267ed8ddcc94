#include "combine/row_ranges.h"

#include <algorithm>

#include "threading/intra_op_threads.h"

namespace workbench {

void ByRowRanges(tensorflow::OpKernelContext* c, int64_t rows, int64_t vectors, int64_t row_bytes,
                 const Part& part) {
  ByCost(c, rows, (vectors + rows) * (4 + row_bytes / 8), part);
}

void ByUniqueRanges(tensorflow::OpKernelContext* c, int64_t ids, int64_t unique, int64_t dim,
                    const Part& part) {
  const int64_t threads = WorthThreads(c, ids * (4 + dim / 2));
  ByRanges(threads, unique, std::max<int64_t>(1, (unique + threads - 1) / threads), part);
}

}  // namespace workbench
