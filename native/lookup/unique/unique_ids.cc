#include "lookup/unique/unique_ids.h"

#include <algorithm>

#include "hashing/random_seed.h"

namespace workbench {
namespace {

constexpr int32_t kFree = -1;
constexpr int kAhead = 8;

// The end of MurmurHash3 (Appleby, public domain): all bits of an id reach the low ones.
inline uint64_t Mixed(uint64_t key) {
  key = (key ^ (key >> 33)) * 0xff51afd7ed558ccdULL;
  key = (key ^ (key >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return key ^ (key >> 33);
}

}  // namespace

int64_t UniqueSlots(int64_t count) {
  int64_t slots = 8;
  while (slots < 2 * count) slots *= 2;
  return slots;
}

template <typename Id>
int64_t UniqueIds(const Id* ids, int64_t count, int32_t* slots, Id* unique, int32_t* index,
                  int32_t* counts) {
  const uint64_t size = UniqueSlots(count);
  const uint64_t mask = size - 1;
  static const uint64_t seed = RandomSeed();
  const auto slot_of = [mask, begin = seed](Id id) {
    return Mixed(static_cast<uint64_t>(id) + begin) & mask;
  };
  std::fill(slots, slots + size, kFree);
  int32_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (i + kAhead < count) __builtin_prefetch(&slots[slot_of(ids[i + kAhead])], 1);
    uint64_t at = slot_of(ids[i]);
    while (slots[at] != kFree && unique[slots[at]] != ids[i]) at = (at + 1) & mask;
    if (slots[at] == kFree) {
      slots[at] = found;
      unique[found] = ids[i];
      counts[found++] = 0;
    }
    index[i] = slots[at];
    ++counts[slots[at]];
  }
  return found;
}

template <typename Id>
int64_t UniqueInOrder(const Id* ids, int64_t count, const int32_t* order, Id* unique,
                      int32_t* index, int32_t* counts) {
  int32_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    const Id id = ids[order[i]];
    if (found == 0 || unique[found - 1] != id) {
      unique[found] = id;
      counts[found++] = 0;
    }
    index[order[i]] = found - 1;
    ++counts[found - 1];
  }
  return found;
}

template int64_t UniqueIds(const int32_t*, int64_t, int32_t*, int32_t*, int32_t*, int32_t*);
template int64_t UniqueIds(const int64_t*, int64_t, int32_t*, int64_t*, int32_t*, int32_t*);
template int64_t UniqueInOrder(const int32_t*, int64_t, const int32_t*, int32_t*, int32_t*,
                               int32_t*);
template int64_t UniqueInOrder(const int64_t*, int64_t, const int32_t*, int64_t*, int32_t*,
                               int32_t*);

}  // namespace workbench
