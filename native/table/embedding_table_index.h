#ifndef WORKBENCH_TABLE_EMBEDDING_TABLE_INDEX_H_
#define WORKBENCH_TABLE_EMBEDDING_TABLE_INDEX_H_

// Which row belongs to a key: open addressing with entries of 4 bytes. The keys stand with the
// rows; an entry is a row number and, in the bits that a row number does not need, some bits of
// the key's hash, so that a wrong row is rarely looked at.

#include <cstdint>
#include <vector>

#include "instructions/prefetch.h"
#include "table/embedding_table_rows.h"

namespace workbench {

// With a seed that nobody knows, nobody can choose keys that all begin at one slot.
inline uint64_t HashKey(int64_t key, uint64_t seed) {
  uint64_t hash = static_cast<uint64_t>(key) + seed + 0x9e3779b97f4a7c15u;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
  return hash ^ (hash >> 31);
}

// Rows are numbered 0, 1, ... without gaps. `key_of(row)` gives the key of a row.
class KeyIndex {
 public:
  static constexpr int64_t kNone = -1;

  explicit KeyIndex(uint64_t seed) : seed_(seed) {}

  // What the calls below take as a key's hash.
  uint64_t Hash(int64_t key) const { return HashKey(key, seed_); }

  // The key's row, kNone if it has none.
  template <typename KeyOf>
  int64_t Find(uint64_t hash, int64_t key, const KeyOf& key_of) const {
    if (entries_.empty()) return kNone;
    const uint32_t tag = Tag(hash);
    for (uint32_t slot = hash & mask_;; slot = (slot + 1) & mask_) {
      const uint32_t entry = entries_[slot];
      if (entry == 0) return kNone;
      if ((entry & ~mask_) == tag && key_of(Row(entry)) == key) return Row(entry);
    }
  }

  // The row that Find will look at first, for prefetching; may be another key's.
  int64_t Guess(uint64_t hash) const {
    if (entries_.empty()) return kNone;
    const uint32_t tag = Tag(hash);
    for (uint32_t slot = hash & mask_;; slot = (slot + 1) & mask_) {
      const uint32_t entry = entries_[slot];
      if (entry == 0) return kNone;
      if ((entry & ~mask_) == tag) return Row(entry);
    }
  }

  WORKBENCH_INLINE void Fetch(uint64_t hash) const {
    if (!entries_.empty()) Prefetch<3>(entries_.data() + (hash & mask_), sizeof(entries_[0]));
  }

  // Adds row `size()`, of a key that is not there; all earlier rows must have their keys.
  template <typename KeyOf>
  void Append(uint64_t hash, const KeyOf& key_of) {
    if (4 * (size_ + 1) > 3 * static_cast<int64_t>(entries_.size())) Grow(key_of);
    Place(hash, size_++);
  }

  // Takes a row out; the last row gets its number. The caller moves the last key after that.
  template <typename KeyOf>
  void Remove(int64_t row, const KeyOf& key_of) {
    Vacate(SlotOf(Hash(key_of(row)), row), key_of);
    const int64_t last = --size_;
    if (row == last) return;
    const uint64_t moved = Hash(key_of(last));
    entries_[SlotOf(moved, last)] = Tag(moved) | static_cast<uint32_t>(row + 1);
  }

  void Clear() {
    Free(&entries_);
    mask_ = 0;
    size_ = 0;
  }

  // Gives memory back that the rows which are left do not need, if it is much.
  template <typename KeyOf>
  void Fit(const KeyOf& key_of) {
    if (size_ == 0) return Clear();
    size_t slots = kFirstSlots;
    while (4 * size_ > 3 * static_cast<int64_t>(slots)) slots *= 2;
    if (2 * slots < entries_.size()) Rebuild(slots, key_of);
  }

  int64_t size() const { return size_; }
  int64_t bytes() const { return static_cast<int64_t>(entries_.capacity() * sizeof(uint32_t)); }

 private:
  static constexpr size_t kFirstSlots = 16;

  // Bits of the hash that do not choose the slot.
  uint32_t Tag(uint64_t hash) const { return static_cast<uint32_t>(hash >> 26) & ~mask_; }

  // An entry holds row + 1: at most 3/4 of the slots are taken, so it fits the slot's bits.
  int64_t Row(uint32_t entry) const { return static_cast<int64_t>(entry & mask_) - 1; }

  void Place(uint64_t hash, int64_t row) {
    uint32_t slot = hash & mask_;
    while (entries_[slot] != 0) slot = (slot + 1) & mask_;
    entries_[slot] = Tag(hash) | static_cast<uint32_t>(row + 1);
  }

  template <typename KeyOf>
  void Grow(const KeyOf& key_of) {
    Rebuild(entries_.empty() ? kFirstSlots : 2 * entries_.size(), key_of);
  }

  template <typename KeyOf>
  void Rebuild(size_t slots, const KeyOf& key_of) {
    Free(&entries_);  // Before the other one is made: the rows know everything.
    entries_.resize(slots);
    mask_ = static_cast<uint32_t>(slots - 1);
    for (int64_t row = 0; row < size_; ++row) Place(Hash(key_of(row)), row);
  }

  uint32_t SlotOf(uint64_t hash, int64_t row) const {
    uint32_t slot = hash & mask_;
    while (Row(entries_[slot]) != row) slot = (slot + 1) & mask_;
    return slot;
  }

  // Empties a slot and moves later entries up, so that every search still meets no gap.
  template <typename KeyOf>
  void Vacate(uint32_t hole, const KeyOf& key_of) {
    for (uint32_t slot = (hole + 1) & mask_; entries_[slot] != 0; slot = (slot + 1) & mask_) {
      const uint32_t home = Hash(key_of(Row(entries_[slot]))) & mask_;
      if (((slot - home) & mask_) < ((slot - hole) & mask_)) continue;
      entries_[hole] = entries_[slot];
      hole = slot;
    }
    entries_[hole] = 0;
  }

  const uint64_t seed_;
  std::vector<uint32_t> entries_;  // 0: empty
  uint32_t mask_ = 0;              // slots - 1
  int64_t size_ = 0;
};

}  // namespace workbench

#endif  // WORKBENCH_TABLE_EMBEDDING_TABLE_INDEX_H_
