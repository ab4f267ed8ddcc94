#include "lookup/grouped/table_rows.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "lookup/unique/id_order.h"

namespace workbench {
namespace {

// Puts row and example number `at` in their places.
void Place(int64_t row, int32_t example, int64_t at, TableRows* touched) {
  if (touched->unique == 0 || row != touched->rows[touched->unique - 1]) {
    touched->firsts[touched->unique] = static_cast<int32_t>(at);
    touched->rows[touched->unique++] = row;
  }
  touched->examples[at] = example;
}

// Of rows that spread too widely for SortTagged.
void OrderSlowly(TableRows* touched) {
  const int64_t ids = touched->ids;
  const std::vector<int64_t> rows(touched->rows.get(), touched->rows.get() + ids);
  const std::vector<int32_t> examples(touched->examples.get(), touched->examples.get() + ids);
  std::vector<int32_t> order(ids);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return rows[a] < rows[b]; });
  for (int64_t i = 0; i < ids; ++i) Place(rows[order[i]], examples[order[i]], i, touched);
}

}  // namespace

void OrderRows(TableRows* touched) {
  const int64_t ids = touched->ids;
  touched->firsts = Unset<int32_t>(ids + 1);
  touched->unique = 0;
  const std::unique_ptr<uint64_t[]> scratch = Unset<uint64_t>(2 * ids);
  int64_t least = 0;
  const uint64_t* sorted =
      SortTagged(touched->rows.get(), touched->examples.get(), ids, scratch.get(), &least);
  if (sorted == nullptr) {
    OrderSlowly(touched);
  } else {
    for (int64_t i = 0; i < ids; ++i) {
      const int64_t row = static_cast<int64_t>(static_cast<uint64_t>(least) + (sorted[i] >> 32));
      Place(row, static_cast<int32_t>(sorted[i]), i, touched);
    }
  }
  touched->firsts[touched->unique] = static_cast<int32_t>(ids);
}

}  // namespace workbench
