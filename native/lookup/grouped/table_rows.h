#ifndef WORKBENCH_LOOKUP_GROUPED_TABLE_ROWS_H_
#define WORKBENCH_LOOKUP_GROUPED_TABLE_ROWS_H_

// The rows of one table that a batch asked for, each once, in ascending order.

#include <cstdint>
#include <vector>

namespace workbench {

struct TableRows {
  std::vector<int64_t> asked;    // [ids], rows as they were asked for
  std::vector<int32_t> example;  // [ids], who asked
  // Set by OrderRows:
  std::vector<int32_t> order;   // [ids], positions in `asked`, ascending by row; equal ones stay
  std::vector<int32_t> firsts;  // [unique + 1], of each row its part of `order`
  std::vector<int64_t> unique;  // [unique], ascending
};

// Orders what was asked for.
void OrderRows(TableRows* rows);

}  // namespace workbench

#endif  // WORKBENCH_LOOKUP_GROUPED_TABLE_ROWS_H_
