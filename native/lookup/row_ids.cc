#include "lookup/row_ids.h"

#include <algorithm>
#include <limits>

namespace workbench {
namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max() - 1;

template <typename Id>
bool Stays(const SparseIds<Id>& in, const KeepRules& rules, int64_t i) {
  if (rules.prune_ids && in.ids[i] < 0) return false;
  // Not "<= 0": a weight that is no number goes too.
  return !(rules.prune_weights && in.weights != nullptr) || in.weights[i] > 0;
}

// The row of an entry, -1 where it lies outside the dense shape.
template <int kRank, typename Id>
int64_t Row(const SparseIds<Id>& in, int64_t i) {
  const int rank = kRank > 0 ? kRank : in.rank;
  const int64_t* at = in.indices + i * rank;
  // Sizes before one of 0 may be beyond all bounds, and then no entry lies inside.
  uint64_t row = 0;
  for (int d = 0; d + 1 < rank; ++d) {
    if (at[d] < 0 || at[d] >= in.dense_shape[d]) return -1;
    row = row * static_cast<uint64_t>(in.dense_shape[d]) + static_cast<uint64_t>(at[d]);
  }
  return static_cast<int64_t>(row);
}

std::string Listed(const int64_t* values, int count) {
  std::string text = "[";
  for (int i = 0; i < count; ++i) text += (i ? ", " : "") + std::to_string(values[i]);
  return text + "]";
}

template <typename Id>
std::string Outside(const SparseIds<Id>& in, int64_t i) {
  return "indices[" + std::to_string(i) + "] is " + Listed(in.indices + i * in.rank, in.rank) +
         ", outside dense_shape " + Listed(in.dense_shape, in.rank);
}

}  // namespace

int64_t RowCount(const int64_t* dense_shape, int rank) {
  int64_t rows = 1;
  for (int d = 0; d < rank; ++d) {
    if (dense_shape[d] < 0) return -1;
  }
  for (int d = 0; d + 1 < rank; ++d) {
    if (dense_shape[d] == 0) return 0;
    if (rows > kMost / dense_shape[d]) rows = kMost + 1;
    if (rows <= kMost) rows *= dense_shape[d];
  }
  return rows > kMost ? -1 : rows;
}

namespace {

// Adds the ids that stay to splits[row + 1]; returns the entry that lies outside, -1 if none does.
//
// Entries of one row mostly follow each other: they are counted in a register.
template <int kRank, typename Id>
int64_t CountIds(const SparseIds<Id>& in, const KeepRules& rules, int32_t* splits) {
  int64_t row = 0;
  int32_t count = 0;
  for (int64_t i = 0; i < in.count; ++i) {
    const int64_t next = Row<kRank>(in, i);
    if (next != row) {
      if (next < 0) return i;
      splits[row + 1] += count;
      row = next;
      count = 0;
    }
    count += Stays(in, rules, i);
  }
  if (count > 0) splits[row + 1] += count;
  return -1;
}

template <int kRank, typename Id>
void MoveIds(const SparseIds<Id>& in, const KeepRules& rules, int32_t* cursors, Id* values,
             float* weights, int32_t* sources) {
  int64_t row = -1;
  int32_t to = 0;
  for (int64_t i = 0; i < in.count; ++i) {
    const int64_t next = Row<kRank>(in, i);
    if (next != row) {
      if (row >= 0) cursors[row] = to;
      row = next;
      to = cursors[row];
    }
    if (!Stays(in, rules, i)) continue;
    values[to] = in.ids[i];
    if (weights != nullptr) weights[to] = in.weights[i];
    if (sources != nullptr) sources[to] = static_cast<int32_t>(i);
    ++to;
  }
  if (row >= 0) cursors[row] = to;
}

}  // namespace

template <typename Id>
std::string SplitRows(const SparseIds<Id>& in, const KeepRules& rules, int64_t rows,
                      int32_t* splits) {
  if (in.count + rows > kMost) {
    return std::to_string(in.count) + " ids of " + std::to_string(rows) +
           " rows; expected at most " + std::to_string(kMost) + " of both together";
  }
  std::fill(splits, splits + rows + 1, 0);
  const int64_t outside =
      in.rank == 2 ? CountIds<2>(in, rules, splits) : CountIds<0>(in, rules, splits);
  if (outside >= 0) return Outside(in, outside);
  for (int64_t r = 0; r < rows; ++r) {
    const int32_t count = splits[r + 1];
    splits[r + 1] = splits[r] + (count == 0 && rules.fill_empty_rows ? 1 : count);
  }
  return "";
}

template <typename Id>
void KeepIds(const SparseIds<Id>& in, const KeepRules& rules, int64_t rows, const int32_t* splits,
             int32_t* cursors, Id* values, float* weights, int32_t* sources) {
  std::copy(splits, splits + rows, cursors);
  if (in.rank == 2) {
    MoveIds<2>(in, rules, cursors, values, weights, sources);
  } else {
    MoveIds<0>(in, rules, cursors, values, weights, sources);
  }
  if (!rules.fill_empty_rows) return;
  for (int64_t r = 0; r < rows; ++r) {
    const int32_t to = splits[r];
    if (cursors[r] != to) continue;
    values[to] = static_cast<Id>(rules.fill_id);
    if (weights != nullptr) weights[to] = 1.0f;
    if (sources != nullptr) sources[to] = -1;
  }
}

int64_t RowOf(const int32_t* splits, int64_t rows, int64_t position) {
  return std::upper_bound(splits, splits + rows + 1, position) - splits - 1;
}

#define WORKBENCH_INSTANTIATE(Id)                                                                \
  template std::string SplitRows(const SparseIds<Id>&, const KeepRules&, int64_t, int32_t*);     \
  template void KeepIds(const SparseIds<Id>&, const KeepRules&, int64_t, const int32_t*,         \
                        int32_t*, Id*, float*, int32_t*)
WORKBENCH_INSTANTIATE(int32_t);
WORKBENCH_INSTANTIATE(int64_t);
#undef WORKBENCH_INSTANTIATE

}  // namespace workbench
