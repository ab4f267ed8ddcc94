#ifndef WORKBENCH_LOOKUP_UNIQUE_UNIQUE_IDS_H_
#define WORKBENCH_LOOKUP_UNIQUE_UNIQUE_IDS_H_

// Each id once: in ascending order where OrderIds found one, else in order of first appearance.

#include <cstdint>

namespace workbench {

// Slots of the hash table for `count` ids: a power of two, at most half full.
int64_t UniqueSlots(int64_t count);

// Finds the different ids.
//
//   slots: scratch, [UniqueSlots(count)].
//   unique, counts: [count]; the first `returned` entries are set: an id, and how often it came.
//   index: [count], where each id stands in `unique`.
template <typename Id>
int64_t UniqueIds(const Id* ids, int64_t count, int32_t* slots, Id* unique, int32_t* index,
                  int32_t* counts);

// The same of ids whose ascending order is known; needs no hash table.
template <typename Id>
int64_t UniqueInOrder(const Id* ids, int64_t count, const int32_t* order, Id* unique,
                      int32_t* index, int32_t* counts);

}  // namespace workbench

#endif  // WORKBENCH_LOOKUP_UNIQUE_UNIQUE_IDS_H_
