#ifndef WORKBENCH_LOOKUP_GROUPED_TABLE_ROWS_H_
#define WORKBENCH_LOOKUP_GROUPED_TABLE_ROWS_H_

// The rows of one table that a batch asked for, each once, in ascending order.

#include <cstdint>
#include <memory>

namespace workbench {

// Memory that is not set to anything before it is written.
template <typename T>
std::unique_ptr<T[]> Unset(int64_t count) {
  return std::unique_ptr<T[]>(new T[count]);
}

struct TableRows {
  // Room for so many ids.
  explicit TableRows(int64_t most = 0)
      : rows(Unset<int64_t>(most)), examples(Unset<int32_t>(most)) {}

  int64_t ids = 0;
  // [ids] as they were asked for; of OrderRows [unique], each once, ascending.
  std::unique_ptr<int64_t[]> rows;
  // [ids] who asked; of OrderRows in the order of the rows, for one row as they came.
  std::unique_ptr<int32_t[]> examples;
  // Of OrderRows:
  int64_t unique = 0;
  std::unique_ptr<int32_t[]> firsts;  // [unique + 1], of each row its part of `examples`
};

// Orders what was asked for.
void OrderRows(TableRows* touched);

}  // namespace workbench

#endif  // WORKBENCH_LOOKUP_GROUPED_TABLE_ROWS_H_
