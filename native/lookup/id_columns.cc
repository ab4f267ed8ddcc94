#include "lookup/id_columns.h"

#include <algorithm>

namespace workbench {
namespace {

// What is added to an id below 0 is not below 0: no sum overflows.
template <typename Id>
Id FromEnd(Id id, Id table_rows) {
  return id + (id < 0 ? table_rows : 0);
}

template <typename From, typename Id>
void CopyRows(const IdColumns<From, Id>& columns, int64_t begin, int64_t end) {
  const Id table_rows = columns.table_rows;
  if (columns.width == 1) {
    for (int64_t r = begin; r < end; ++r) {
      columns.to[r] = FromEnd(ToId<Id>(columns.from[r * columns.stride]), table_rows);
    }
    return;
  }
  for (int64_t r = begin; r < end; ++r) {
    const From* from = columns.from + r * columns.stride;
    Id* to = columns.to + r * columns.width;
    for (int64_t i = 0; i < columns.width; ++i) to[i] = FromEnd(ToId<Id>(from[i]), table_rows);
  }
}

}  // namespace

template <typename From, typename Id>
void CountFromEnd(const IdColumns<From, Id>* columns, int64_t count, int64_t begin, int64_t end) {
  for (int64_t first = begin; first < end; first += kIdRowsAtOnce) {
    const int64_t last = std::min(first + kIdRowsAtOnce, end);
    for (const IdColumns<From, Id>* each = columns; each != columns + count; ++each) {
      if (first < each->rows) CopyRows(*each, first, std::min(last, each->rows));
    }
  }
}

#define WORKBENCH_INSTANTIATE(From)                                                           \
  template void CountFromEnd(const IdColumns<From, int32_t>*, int64_t, int64_t, int64_t);     \
  template void CountFromEnd(const IdColumns<From, int64_t>*, int64_t, int64_t, int64_t)
WORKBENCH_INSTANTIATE(int32_t);
WORKBENCH_INSTANTIATE(int64_t);
WORKBENCH_INSTANTIATE(float);
#undef WORKBENCH_INSTANTIATE

}  // namespace workbench
