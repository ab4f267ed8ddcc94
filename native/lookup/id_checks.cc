#include "lookup/id_checks.h"

#include "instructions/clones.h"

namespace workbench {
namespace {

// No branch, and many ids at a time.
template <typename Id>
WORKBENCH_INLINE bool ReadInside(const Id* ids, int64_t count, int64_t table_rows, int64_t* rows) {
  uint64_t wrong = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = static_cast<int64_t>(ids[i]);
    // The sign of a row below 0, and of what is left of a table that it is beyond.
    const uint64_t left = static_cast<uint64_t>(table_rows) - 1 - static_cast<uint64_t>(row);
    wrong |= static_cast<uint64_t>(row) | left;
    rows[i] = row;
  }
  return wrong >> 63 == 0;
}

// Of a chunk in few instructions, for the compiler knows how many there are.
template <typename Id>
WORKBENCH_INLINE bool ReadAllInside(const Id* ids, int64_t count, int64_t table_rows,
                                    int64_t* rows) {
  return count == kChunkIds ? ReadInside(ids, kChunkIds, table_rows, rows)
                            : ReadInside(ids, count, table_rows, rows);
}

template <int64_t kApart>
WORKBENCH_INLINE bool AreConsecutive(const int64_t* entries, int64_t count, int64_t first) {
  uint64_t wrong = 0;
  for (int64_t i = 0; i < count; ++i) {
    wrong |= static_cast<uint64_t>(entries[kApart * i] ^ (first + i));
  }
  return wrong == 0;
}

WORKBENCH_INLINE uint64_t Falls(const int64_t* indices, int64_t count) {
  uint64_t wrong = 0;
  for (int64_t i = 0; i + 1 < count; ++i) {
    const uint64_t next = static_cast<uint64_t>(indices[2 * i + 2]);
    // The sign of one below 0, for what it is behind may then not be told from the difference.
    wrong |= next | (next - static_cast<uint64_t>(indices[2 * i]));
  }
  return wrong >> 63;
}

}  // namespace

WORKBENCH_CLONES bool AllInside(const int32_t* ids, int64_t count, int64_t table_rows,
                                int64_t* rows) {
  return ReadAllInside(ids, count, table_rows, rows);
}

WORKBENCH_CLONES bool AllInside(const int64_t* ids, int64_t count, int64_t table_rows,
                                int64_t* rows) {
  return ReadAllInside(ids, count, table_rows, rows);
}

WORKBENCH_CLONES bool IndicesCount(const int64_t* indices, int64_t count, int64_t first) {
  return AreConsecutive<2>(indices, count, first);
}

WORKBENCH_CLONES bool SplitsCount(const int64_t* splits, int64_t count, int64_t first) {
  return AreConsecutive<1>(splits, count, first);
}

WORKBENCH_CLONES bool InOrder(const int64_t* indices, int64_t count, int64_t first, int64_t end) {
  const bool inside = indices[0] >= first && indices[2 * count - 2] < end;
  return inside && (count == kChunkIds ? Falls(indices, kChunkIds) : Falls(indices, count)) == 0;
}

}  // namespace workbench
