#include "lookup/grouped/table_rows.h"

#include <algorithm>
#include <numeric>

#include "lookup/unique/id_order.h"

namespace workbench {

void OrderRows(TableRows* rows) {
  const std::vector<int64_t>& asked = rows->asked;
  const int64_t count = static_cast<int64_t>(asked.size());
  rows->order.resize(count);
  std::vector<uint64_t> scratch(2 * count);
  if (!OrderIds(asked.data(), count, scratch.data(), rows->order.data())) {
    std::iota(rows->order.begin(), rows->order.end(), 0);
    std::stable_sort(rows->order.begin(), rows->order.end(),
                     [&](int32_t a, int32_t b) { return asked[a] < asked[b]; });
  }
  rows->firsts.clear();
  rows->unique.clear();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = asked[rows->order[i]];
    if (i > 0 && row == rows->unique.back()) continue;
    rows->firsts.push_back(static_cast<int32_t>(i));
    rows->unique.push_back(row);
  }
  rows->firsts.push_back(static_cast<int32_t>(count));
}

}  // namespace workbench
