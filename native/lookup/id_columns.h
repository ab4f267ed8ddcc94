#ifndef WORKBENCH_LOOKUP_ID_COLUMNS_H_
#define WORKBENCH_LOOKUP_ID_COLUMNS_H_

// Columns of matrices of ids, in which an id below 0 counts from the end of its table.

#include <cstdint>
#include <limits>
#include <type_traits>

namespace workbench {

// Some columns beside each other; one that is all of a tensor has stride and width 1.
template <typename From, typename Id>
struct IdColumns {
  const From* from = nullptr;  // the first row
  int64_t stride = 1;        // from a row to the next one
  int64_t width = 1;         // columns
  int64_t rows = 0;          // of the matrix
  Id table_rows = 0;         // 0 or above
  Id* to = nullptr;          // [rows, width]
};

// How many rows are read for one of `columns` after the other: the matrix stays in the nearest
// cache meanwhile.
constexpr int64_t kIdRowsAtOnce = 64;

// A number as an id, as TensorFlow's Cast has it on x86: toward 0, and the least id for what no id
// is.
template <typename Id, typename From>
Id ToId(From number) {
  if constexpr (std::is_floating_point_v<From>) {
    // A power of two, which is exact.
    constexpr From kBound = -static_cast<From>(std::numeric_limits<Id>::min());
    if (!(number >= -kBound && number < kBound)) return std::numeric_limits<Id>::min();
  }
  return static_cast<Id>(number);
}

// Copies rows [begin, end) of all columns; `end` may lie behind the rows of some.
template <typename From, typename Id>
void CountFromEnd(const IdColumns<From, Id>* columns, int64_t count, int64_t begin, int64_t end);

}  // namespace workbench

#endif  // WORKBENCH_LOOKUP_ID_COLUMNS_H_
