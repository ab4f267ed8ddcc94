#include "lookup/grouped/table_rows.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "lookup/unique/id_order.h"

namespace workbench {
namespace {

// Puts row and example number `at` in their places.
void Place(int64_t row, int32_t example, int64_t at, TableRows* asked) {
  if (asked->unique == 0 || row != asked->rows[asked->unique - 1]) {
    asked->firsts[asked->unique] = static_cast<int32_t>(at);
    asked->rows[asked->unique++] = row;
  }
  asked->examples[at] = example;
}

// Of rows that spread too widely for SortTagged.
void OrderSlowly(TableRows* asked) {
  const int64_t ids = asked->ids;
  const std::vector<int64_t> rows(asked->rows.get(), asked->rows.get() + ids);
  const std::vector<int32_t> examples(asked->examples.get(), asked->examples.get() + ids);
  std::vector<int32_t> order(ids);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return rows[a] < rows[b]; });
  for (int64_t i = 0; i < ids; ++i) Place(rows[order[i]], examples[order[i]], i, asked);
}

}  // namespace

void OrderRows(TableRows* asked) {
  const int64_t ids = asked->ids;
  asked->firsts = Unset<int32_t>(ids + 1);
  asked->unique = 0;
  const std::unique_ptr<uint64_t[]> scratch = Unset<uint64_t>(2 * ids);
  int64_t least = 0;
  const uint64_t* sorted =
      SortTagged(asked->rows.get(), asked->examples.get(), ids, scratch.get(), &least);
  if (sorted == nullptr) {
    OrderSlowly(asked);
  } else {
    for (int64_t i = 0; i < ids; ++i) {
      const int64_t row = static_cast<int64_t>(static_cast<uint64_t>(least) + (sorted[i] >> 32));
      Place(row, static_cast<int32_t>(sorted[i]), i, asked);
    }
  }
  asked->firsts[asked->unique] = static_cast<int32_t>(ids);
}

}  // namespace workbench
