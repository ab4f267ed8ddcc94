#ifndef WORKBENCH_LOOKUP_ROW_IDS_H_
#define WORKBENCH_LOOKUP_ROW_IDS_H_

// Pre-lookup: the ids of a sparse tensor that stay, in order of their rows. A row is one entry of
// all but the last dimension; its ids keep the order they came in.

#include <cstdint>
#include <string>

namespace workbench {

// The coordinates of a SparseTensor of rank 2 or more, ids and, if there are any, weights.
template <typename Id>
struct SparseIds {
  const Id* ids = nullptr;
  const int64_t* indices = nullptr;  // [count, rank]
  const float* weights = nullptr;    // [count], or null
  int64_t count = 0;
  const int64_t* dense_shape = nullptr;  // [rank]
  int rank = 2;
};

// Which ids stay, and what stands for a row without any.
struct KeepRules {
  bool prune_ids = false;      // drop ids below 0
  bool prune_weights = false;  // drop weights that are not above 0
  bool fill_empty_rows = false;
  int64_t fill_id = 0;
};

// Rows of a sparse tensor: the product of all but its last dimension. -1 where a dimension is
// negative, or the product beyond what an int32 counts.
int64_t RowCount(const int64_t* dense_shape, int rank);

// Counts the ids that stay and makes row_splits of them.
//
//   splits: [rows + 1]; ids of row r are to stand from splits[r] to splits[r + 1].
//
// Returns what is wrong with the input, empty if nothing is.
template <typename Id>
std::string SplitRows(const SparseIds<Id>& in, const KeepRules& rules, int64_t rows,
                      int32_t* splits);

// Writes what stays to the places that SplitRows made.
//
//   cursors: scratch, [rows].
//   values, weights, sources: [splits[rows]]; weights and sources may be null. A source is the
//     position of an id in the input, -1 of a filled one; a filled one has weight 1.
template <typename Id>
void KeepIds(const SparseIds<Id>& in, const KeepRules& rules, int64_t rows, const int32_t* splits,
             int32_t* cursors, Id* values, float* weights, int32_t* sources);

// The row that holds the kept id at `position`.
int64_t RowOf(const int32_t* splits, int64_t rows, int64_t position);

}  // namespace workbench

#endif  // WORKBENCH_LOOKUP_ROW_IDS_H_
