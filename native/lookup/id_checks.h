#ifndef WORKBENCH_LOOKUP_ID_CHECKS_H_
#define WORKBENCH_LOOKUP_ID_CHECKS_H_

// What is to be known of many ids at a time, by vector instructions.

#include <cstdint>

namespace workbench {

// Ids that are best checked together.
constexpr int64_t kChunkIds = 32;

// Reads ids all of which are rows of a table, [0, table_rows); false where one is not.
//
//   rows: [count], all set in any case.
bool AllInside(const int32_t* ids, int64_t count, int64_t table_rows, int64_t* rows);
bool AllInside(const int64_t* ids, int64_t count, int64_t table_rows, int64_t* rows);

// Whether the examples of indices [count, 2] are first, first + 1 and so on; whether splits are.
bool IndicesCount(const int64_t* indices, int64_t count, int64_t first);
bool SplitsCount(const int64_t* splits, int64_t count, int64_t first);

// Whether the examples of indices [count, 2], at least one, never fall, and are all in [first, end),
// where first is not below 0.
bool InOrder(const int64_t* indices, int64_t count, int64_t first, int64_t end);

}  // namespace workbench

#endif  // WORKBENCH_LOOKUP_ID_CHECKS_H_
