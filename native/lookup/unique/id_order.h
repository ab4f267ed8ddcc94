#ifndef WORKBENCH_LOOKUP_UNIQUE_ID_ORDER_H_
#define WORKBENCH_LOOKUP_UNIQUE_ID_ORDER_H_

// Ids in ascending order. A table is read and updated several times as fast in the order of its
// rows as in random order: its pages come one after the other, and so do the entries of the page
// table.

#include <cstdint>

namespace workbench {

// Sorts ids, each with a tag of its own; equal ids keep their order.
//
//   tags: [count], 0 or above; null: the positions. scratch: [2 * count].
//
// Returns words in `scratch`: the distance to the least id in the upper 32 bits, the tag below. Null
// where ids spread too widely for a few passes.
template <typename Id>
const uint64_t* SortTagged(const Id* ids, const int32_t* tags, int64_t count, uint64_t* scratch,
                           Id* least);

// Finds the positions of ids in ascending order; equal ids keep theirs.
//
//   scratch: [2 * count]. order: [count].
//
// Returns false where ids spread too widely for a few passes; keys of a hash table do, and have no
// order to gain from.
template <typename Id>
bool OrderIds(const Id* ids, int64_t count, uint64_t* scratch, int32_t* order);

}  // namespace workbench

#endif  // WORKBENCH_LOOKUP_UNIQUE_ID_ORDER_H_
