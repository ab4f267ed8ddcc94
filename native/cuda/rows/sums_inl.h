#ifndef WORKBENCH_CUDA_ROWS_SUMS_INL_H_
#define WORKBENCH_CUDA_ROWS_SUMS_INL_H_

// Sums of gradients that lie anywhere. A lane sums the columns of one pack over all of them, in their
// order, so that the bits depend on nothing else.

#include <cstdint>

#include "cuda/device/portable.h"
#include "cuda/device/scalars.h"

namespace workbench::cuda {

// Gradients that a lane has asked the memory for before it adds the first.
constexpr int kInFlight = 4;

// Adds columns [column, column + kPack) of rows [first, last), each with its factor.
//
//   rows: has type Value, and At(i, &factor).
template <int kPack, typename Rows>
WORKBENCH_DEVICE void AddRows(const Rows& rows, int64_t first, int64_t last, int64_t column,
                              float* sums) {
  using T = typename Rows::Value;
  for (int64_t i = first; i < last; i += kInFlight) {
    Pack<T, kPack> packs[kInFlight];
    float factors[kInFlight];
    WORKBENCH_UNROLL
    for (int k = 0; k < kInFlight; ++k) {
      if (i + k < last) packs[k] = Load<T, kPack>(rows.At(i + k, &factors[k]) + column);
    }
    WORKBENCH_UNROLL
    for (int k = 0; k < kInFlight; ++k) {
      if (i + k >= last) continue;
      WORKBENCH_UNROLL
      for (int c = 0; c < kPack; ++c) sums[c] += ToFloat(packs[k].at[c]) * factors[k];
    }
  }
}

// Calls `function(lane, column)` for all packs of a row.
template <int kPack, typename Function>
WORKBENCH_DEVICE void EachPack(const Group& group, int64_t dim, const Function& function) {
  for (int64_t begin = 0; begin < dim; begin += group.lanes() * kPack) {
    group.Each([&](int lane) {
      const int64_t column = begin + lane * kPack;
      if (column < dim) function(lane, column);
    });
  }
}

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_ROWS_SUMS_INL_H_
