#ifndef WORKBENCH_TABLE_EMBEDDING_TABLE_WAITING_H_
#define WORKBENCH_TABLE_EMBEDDING_TABLE_WAITING_H_

// The keys that have no row yet: each key with its count, or, in a Bloom filter, counts alone.

#include <cstdint>
#include <limits>
#include <vector>

#include "table/embedding_table_index.h"

namespace workbench {

// The version of a row whose last use is unknown.
constexpr int64_t kNoVersion = -1;

// Counts of keys stop here.
constexpr int64_t kMostFreq = std::numeric_limits<uint32_t>::max();

inline uint32_t Saturated(int64_t freq) {
  if (freq < 0) return 0;
  return static_cast<uint32_t>(freq < kMostFreq ? freq : kMostFreq);
}

// A step that a caller or a checkpoint gives.
inline int64_t Version(int64_t step) { return step < kNoVersion ? kNoVersion : step; }

// Whether a row last used in `version` is removed in `step`. An unknown version, or a later one,
// which is another model's, becomes `step`.
inline bool IsOld(int64_t step, int64_t steps_to_live, int64_t* version) {
  if (*version == kNoVersion || *version > step) *version = Version(step);
  return step - *version > steps_to_live;
}

// The keys that have not come often enough yet, with their counts.
class WaitingKeys {
 public:
  // most: keys that it holds; one more removes the half with the lowest counts, of equal counts the
  // older keys. keep_versions: whether to keep the step in which a key came last.
  WaitingKeys(uint64_t seed, int64_t most, bool keep_versions);

  // Adds to a key's count and returns it.
  int64_t Add(uint64_t hash, int64_t key, int64_t count, int64_t step);
  void Remove(uint64_t hash, int64_t key);

  // Removes keys that did not come for more than `steps_to_live` steps.
  void Evict(int64_t step, int64_t steps_to_live);
  void Clear();

  int64_t size() const { return index_.size(); }
  int64_t bytes() const;
  const std::vector<int64_t>& keys() const { return keys_; }
  const std::vector<uint32_t>& counts() const { return counts_; }
  const std::vector<int64_t>& versions() const { return versions_; }

 private:
  auto KeyOf() const {
    return [this](int64_t row) { return keys_[row]; };
  }
  void DropHalf();
  // Keeps the rows that are marked, in their order.
  void Keep(const std::vector<bool>& marked);

  const int64_t most_;
  const bool keep_versions_;
  KeyIndex index_;
  std::vector<int64_t> keys_;
  std::vector<uint32_t> counts_;
  std::vector<int64_t> versions_;  // empty if not kept
};

// A counting Bloom filter: counts of keys in memory that does not grow. A key's count is never too
// low; it is too high for a key that shares all of its counters with other keys.
class BloomCounts {
 public:
  // counters: how many, 0 for no filter. hashes: counters of a key. counter_bytes: 1, 2, 4 or 8.
  BloomCounts(int64_t counters, int hashes, int counter_bytes);

  bool on() const { return counters_ > 0; }

  // Adds to a key's count and returns it, at most what a counter holds.
  int64_t Add(int64_t key, int64_t count);
  void Clear();

  int64_t bytes() const { return static_cast<int64_t>(words_.capacity() * sizeof(uint64_t)); }

  // The counters as they lie in memory, for a checkpoint.
  int64_t words() const { return static_cast<int64_t>(words_.size()); }
  void Export(int64_t* to) const;
  void Import(const int64_t* from);

 private:
  uint64_t At(int64_t counter) const;
  void Set(int64_t counter, uint64_t value);

  const int64_t counters_;
  const int hashes_;
  const int bits_;
  const int64_t in_word_;
  std::vector<uint64_t> words_;
};

}  // namespace workbench

#endif  // WORKBENCH_TABLE_EMBEDDING_TABLE_WAITING_H_
