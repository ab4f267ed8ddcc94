#ifndef WORKBENCH_CUDA_ROWS_SUMS_INL_H_
#define WORKBENCH_CUDA_ROWS_SUMS_INL_H_

// The loop that all time goes into: sums of rows that lie anywhere. A lane sums the columns of one
// pack over all rows, in their order, so that the bits depend on nothing else.

#include <cstdint>

#include "cuda/device/portable.h"
#include "cuda/device/scalars.h"

namespace workbench::cuda {

// Rows that a lane has asked the memory for before it adds the first.
constexpr int kInFlight = 4;

// Adds columns [column, column + kPack) of rows [first, last); returns how many there were.
//
//   rows: has type Value, and At(i, &factor), null of a row that counts for nothing.
template <int kPack, typename Sum, typename Rows>
WORKBENCH_DEVICE int64_t AddRows(const Rows& rows, int64_t first, int64_t last, int64_t column,
                                 Sum* sums) {
  using T = typename Rows::Value;
  int64_t added = 0;
  for (int64_t i = first; i < last; i += kInFlight) {
    Pack<T, kPack> packs[kInFlight];
    float factors[kInFlight];
    bool there[kInFlight];
    WORKBENCH_UNROLL
    for (int k = 0; k < kInFlight; ++k) {
      factors[k] = 1.0f;
      const T* row = i + k < last ? rows.At(i + k, &factors[k]) : nullptr;
      there[k] = row != nullptr;
      if (there[k]) packs[k] = Load<T, kPack>(row + column);
    }
    WORKBENCH_UNROLL
    for (int k = 0; k < kInFlight; ++k) {
      if (!there[k]) continue;
      ++added;
      WORKBENCH_UNROLL
      for (int c = 0; c < kPack; ++c) sums[c] += ToFloat(packs[k].at[c]) * factors[k];
    }
  }
  return added;
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
