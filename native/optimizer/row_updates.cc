#include "optimizer/row_updates.h"

#include <algorithm>

#include "instructions/prefetch.h"

namespace workbench {
namespace {

constexpr int64_t kRowsAhead = 6;

template <int kCache>
WORKBENCH_INLINE void PrefetchRow(const DenseTable& table, int64_t row) {
  constexpr int64_t kBytes = sizeof(float);
  Prefetch<kCache>(table.values + row * table.dim, table.dim * kBytes);
  for (int s = 0; s < table.slot_count; ++s) {
    Prefetch<kCache>(table.slots[s] + row * table.slot_dims[s], table.slot_dims[s] * kBytes);
  }
}

}  // namespace

void FetchRows(const DenseTable& table, const int64_t* rows, int64_t count) {
  for (int64_t i = 0; i < count; ++i) PrefetchRow<2>(table, rows[i]);
}

void UpdateRows(const UpdateRule& rule, const DenseTable& table, const int64_t* rows,
                const float* grads, int64_t begin, int64_t end) {
  const int64_t dim = table.dim, grad_dim = rule.TakesSquares() ? 2 * dim : dim;
  for (int64_t i = begin; i < end; ++i) {
    if (i + kRowsAhead < end) PrefetchRow<3>(table, rows[i + kRowsAhead]);
    float* slots[kMostRowSlots] = {};
    for (int s = 0; s < table.slot_count; ++s) slots[s] = table.slots[s] + rows[i] * table.slot_dims[s];
    rule.Update(dim, grads + i * grad_dim, table.values + rows[i] * dim, slots);
  }
}

void UpdateOthers(const AllRowsRule& rule, const DenseTable& table, int64_t begin, int64_t end) {
  if (begin >= end) return;
  float* slots[kMostRowSlots] = {};
  for (int s = 0; s < table.slot_count; ++s) slots[s] = table.slots[s] + begin * table.slot_dims[s];
  rule.UpdateOthers((end - begin) * table.dim, table.values + begin * table.dim, slots);
}

bool Ascending(const int64_t* rows, int64_t count) {
  return std::adjacent_find(rows, rows + count, [](int64_t a, int64_t b) { return a >= b; }) ==
         rows + count;
}

}  // namespace workbench
