#include "optimizer/row_updates.h"

#include <algorithm>

namespace workbench {
namespace {

constexpr int64_t kAhead = 6;
constexpr int64_t kFloatsOfLine = 16;

template <int kNear>
void Fetch(const float* from, int64_t dim) {
  for (int64_t c = 0; c < dim; c += kFloatsOfLine) __builtin_prefetch(from + c, 1, kNear);
}

template <int kNear>
void FetchRow(const DenseTable& table, int64_t row) {
  Fetch<kNear>(table.values + row * table.dim, table.dim);
  for (int s = 0; s < table.slot_count; ++s) {
    Fetch<kNear>(table.slots[s] + row * table.slot_dims[s], table.slot_dims[s]);
  }
}

}  // namespace

void FetchRows(const DenseTable& table, const int64_t* rows, int64_t count) {
  for (int64_t i = 0; i < count; ++i) FetchRow<2>(table, rows[i]);
}

void UpdateRows(const UpdateRule& rule, const DenseTable& table, const int64_t* rows,
                const float* grads, int64_t begin, int64_t end) {
  const int64_t dim = table.dim, grad_dim = rule.TakesSquares() ? 2 * dim : dim;
  for (int64_t i = begin; i < end; ++i) {
    if (i + kAhead < end) FetchRow<3>(table, rows[i + kAhead]);
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
