#ifndef WORKBENCH_OPTIMIZER_ROW_UPDATES_H_
#define WORKBENCH_OPTIMIZER_ROW_UPDATES_H_

// An optimizer's update of some rows of a dense table.

#include <cstdint>

#include "optimizer/update_rules.h"

namespace workbench {

constexpr int kMostRowSlots = 2;

// A table [rows, dim], and what an optimizer keeps beside each of its rows.
struct DenseTable {
  float* values = nullptr;
  int64_t dim = 0;
  float* slots[kMostRowSlots] = {};  // [rows, slot_dims]
  int64_t slot_dims[kMostRowSlots] = {};
  int slot_count = 0;
};

// Asks the memory for rows that UpdateRows will change soon.
void FetchRows(const DenseTable& table, const int64_t* rows, int64_t count);

// Changes table row rows[i] by gradient i, with its squares where the rule takes them, for i in
// [begin, end). Ranges may run at a time where no
// row comes twice.
void UpdateRows(const UpdateRule& rule, const DenseTable& table, const int64_t* rows,
                const float* grads, int64_t begin, int64_t end);

// Changes the rows [begin, end) of the table, all without a gradient.
void UpdateOthers(const AllRowsRule& rule, const DenseTable& table, int64_t begin, int64_t end);

// Whether each row is above the one before, so that none comes twice.
bool Ascending(const int64_t* rows, int64_t count);

}  // namespace workbench

#endif  // WORKBENCH_OPTIMIZER_ROW_UPDATES_H_
