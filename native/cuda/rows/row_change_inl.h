#ifndef WORKBENCH_CUDA_ROWS_ROW_CHANGE_INL_H_
#define WORKBENCH_CUDA_ROWS_ROW_CHANGE_INL_H_

// One change of one row of a table and of its slots, by a group of lanes.

#include <cstdint>

#include "cuda/calls.h"
#include "cuda/device/portable.h"

namespace workbench::cuda {

// Lets a rule change the columns of one pack. The row is asked for before its gradient is summed.
template <int kPack, typename TheRule, typename Gradient>
WORKBENCH_DEVICE void ChangePack(const TheRule& rule, const TableCall& table, int64_t row,
                                 int64_t column, const Gradient& gradient) {
  const int64_t at = row * table.dim + column;
  float* values = static_cast<float*>(table.values) + at;
  Pack<float, kPack> value = Load<float, kPack>(values);
  Pack<float, kPack> slots[TheRule::kSlots + 1];
  for (int s = 0; s < TheRule::kSlots; ++s) slots[s] = Load<float, kPack>(table.slots[s] + at);
  float grad[kPack] = {};
  gradient(column, grad);
  WORKBENCH_UNROLL
  for (int c = 0; c < kPack; ++c) {
    float* of_value[TheRule::kSlots + 1];
    for (int s = 0; s < TheRule::kSlots; ++s) of_value[s] = &slots[s].at[c];
    rule.Step(grad[c], &value.at[c], of_value);
  }
  Store(value, values);
  for (int s = 0; s < TheRule::kSlots; ++s) Store(slots[s], table.slots[s] + at);
}

// Changes one row by one gradient.
//
//   gradient: called with a column and kPack floats to fill; a rule by row calls it twice.
template <int kPack, typename TheRule, typename Gradient>
WORKBENCH_DEVICE void ChangeRow(const Group& group, const TheRule& rule, const TableCall& table,
                                int64_t row, const Gradient& gradient) {
  if constexpr (TheRule::kByRow) {
    PerLane<float> squares, before;
    EachPack<kPack>(group, table.dim, [&](int lane, int64_t column) {
      float grad[kPack] = {};
      gradient(column, grad);
      for (int c = 0; c < kPack; ++c) squares[lane] += grad[c] * grad[c];
    });
    // The first lane alone reads and writes the slot; the sum tells the others.
    group.Each([&](int lane) { before[lane] = lane == 0 ? table.slots[0][row] : 0; });
    const float accum = group.Sum(before) + group.Sum(squares) / static_cast<float>(table.dim);
    const float rate = rule.Rate(accum);
    group.Each([&](int lane) {
      if (lane == 0) table.slots[0][row] = accum;
    });
    EachPack<kPack>(group, table.dim, [&](int, int64_t column) {
      float grad[kPack] = {};
      gradient(column, grad);
      float* values = static_cast<float*>(table.values) + row * table.dim + column;
      Pack<float, kPack> value = Load<float, kPack>(values);
      WORKBENCH_UNROLL
      for (int c = 0; c < kPack; ++c) value.at[c] -= rate * grad[c];
      Store(value, values);
    });
  } else {
    EachPack<kPack>(group, table.dim, [&](int, int64_t column) {
      ChangePack<kPack>(rule, table, row, column, gradient);
    });
  }
}

// Whether a table and its slots can be read in packs.
inline bool TableFitsPacks(const TableCall& table, bool slots_by_row) {
  bool fits = FitsPacks<float>(table.values, table.dim);
  for (const float* slot : table.slots) fits = fits && (slots_by_row || FitsPacks<float>(slot, 0));
  return fits;
}

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_ROWS_ROW_CHANGE_INL_H_
