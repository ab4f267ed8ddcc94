#include "optimizer/row_updates.h"

#include <algorithm>

namespace workbench {
namespace {

constexpr int64_t kAhead = 6;
constexpr int64_t kFloatsOfLine = 16;

void Fetch(const float* from, int64_t dim) {
  for (int64_t c = 0; c < dim; c += kFloatsOfLine) __builtin_prefetch(from + c, 1);
}

}  // namespace

void UpdateRows(const UpdateRule& rule, const DenseTable& table, const int64_t* rows,
                const float* grads, int64_t begin, int64_t end) {
  const int64_t dim = table.dim;
  for (int64_t i = begin; i < end; ++i) {
    if (i + kAhead < end) {
      const int64_t ahead = rows[i + kAhead] * dim;
      Fetch(table.values + ahead, dim);
      for (int s = 0; s < table.slot_count; ++s) Fetch(table.slots[s] + ahead, dim);
    }
    float* slots[kMostRowSlots] = {};
    for (int s = 0; s < table.slot_count; ++s) slots[s] = table.slots[s] + rows[i] * dim;
    rule.Update(dim, grads + i * dim, table.values + rows[i] * dim, slots);
  }
}

bool Ascending(const int64_t* rows, int64_t count) {
  return std::adjacent_find(rows, rows + count, [](int64_t a, int64_t b) { return a >= b; }) ==
         rows + count;
}

}  // namespace workbench
