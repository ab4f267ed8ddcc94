#ifndef WORKBENCH_TABLE_EMBEDDING_TABLE_SHARD_H_
#define WORKBENCH_TABLE_EMBEDDING_TABLE_SHARD_H_

// One shard of an embedding table: the rows of the keys whose hash chooses it.

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "instructions/prefetch.h"
#include "optimizer/update_rules.h"
#include "table/embedding_table_index.h"
#include "table/embedding_table_rows.h"
#include "table/embedding_table_waiting.h"

namespace workbench {

constexpr int kTableShards = 64;

struct TableOptions {
  int64_t dim = 1;
  // A key gets a row when it has come this often; 0: at once.
  int64_t filter_freq = 0;
  // All values of a key that has no row yet because of filter_freq.
  float no_permission = 0;
  // Whether to keep the step in which a row, or a key that waits for one, was last looked up.
  bool keep_versions = false;
  // Most keys that wait for filter_freq.
  int64_t most_waiting = int64_t{1} << 24;
  // Counters of a Bloom filter that counts the keys instead, 0: none; counters of a key, and bytes
  // of a counter.
  int64_t bloom_counters = 0;
  int64_t bloom_hashes = 0;
  int64_t bloom_bytes = 1;

  bool keep_freqs() const { return filter_freq > 0; }
};

// With this limit no size below overflows.
constexpr int64_t kMostDim = int64_t{1} << 16;

struct LookupBatch {
  const int64_t* keys = nullptr;    // [count], duplicates allowed
  const int32_t* counts = nullptr;  // [count], how often each came; null: once
  int64_t count = 0;
  const float* default_rows = nullptr;  // [default_count, dim]; key k starts as row k mod count
  int64_t default_count = 0;
  int64_t step = kNoVersion;
  bool read_only = false;  // make no rows, count nothing
  float* out = nullptr;    // [count, dim]
};

// What a key's row starts as.
inline const float* DefaultRow(const float* default_rows, int64_t default_count, int64_t key,
                               int64_t dim) {
  const int64_t left = key % default_count;
  return default_rows + (left < 0 ? left + default_count : left) * dim;
}

struct UpdateBatch {
  const int64_t* keys = nullptr;  // [count]; the gradients of one key are summed, in their order
  int64_t count = 0;
  const float* grads = nullptr;  // [count, dim]
};

// Where rows are copied to, or from. freqs and versions may be null.
template <typename Int, typename Float>
struct RowArrays {
  Int* keys = nullptr;      // [rows]
  Float* values = nullptr;  // [rows, dim]
  Int* freqs = nullptr;     // [rows]
  Int* versions = nullptr;  // [rows]
  std::vector<Float*> slots;  // each [rows, dim], in the order of the table's slots; null: none
  Int* filtered_keys = nullptr;      // [filtered], those that wait for filter_freq
  Int* filtered_freqs = nullptr;     // [filtered]
  Int* filtered_versions = nullptr;  // [filtered], or null
  int64_t filtered_stride = 1;       // from one of these two to the next
  Int* bloom = nullptr;              // [bloom_words], or null
};
using RowTargets = RowArrays<int64_t, float>;
using RowSources = RowArrays<const int64_t, const float>;

// Equal, or neither is a number.
inline bool SameNumber(float a, float b) { return a == b || (a != a && b != b); }

struct Slot {
  std::string name;
  float initial = 0;
};

// Memory of one thread for Update, reused from shard to shard.
struct UpdateScratch {
  std::vector<int32_t> places;  // hash table: row -> position in `rows`, plus 1
  std::vector<int64_t> rows;
  std::vector<float> sums;
};

// Lookup, Update and AddIfMissing take the shard's lock; those of rows in place need that nobody
// changes rows meanwhile; other calls need the table's lock, held exclusively.
class TableShard {
 public:
  TableShard(const TableOptions& options, uint64_t seed);

  // `at` are the positions in the batch that belong to this shard.
  void Lookup(const LookupBatch& batch, const int32_t* at, int64_t count);

  // Changes each key's row once. Keys without a row are skipped.
  void Update(const UpdateBatch& batch, const std::vector<int>& slots, const UpdateRule& rule,
              const int32_t* at, int64_t count, UpdateScratch* scratch);

  // Adds the row of a key, of a table without a filter.
  void AddIfMissing(int64_t key, const float* values);

  // Rows in place. Hash is what the others take as a key's hash.
  uint64_t Hash(int64_t key) const { return index_.Hash(key); }
  WORKBENCH_INLINE void FetchIndex(uint64_t hash) const { index_.Fetch(hash); }
  // Asks the memory for the row that Find will look at first, and for its values, if these are to
  // be read.
  WORKBENCH_INLINE void FetchRow(uint64_t hash, bool values) const {
    const int64_t row = index_.Guess(hash);
    if (row == KeyIndex::kNone) return;
    Prefetch<3>(keys_.At(row), sizeof(int64_t));
    if (!values) return;
    // Not into the nearest cache, which has room for few rows on their way.
    constexpr int64_t kMostBytes = 256;
    const int64_t bytes = options_.dim * static_cast<int64_t>(sizeof(float));
    Prefetch<2>(values_.At(row), std::min(bytes, kMostBytes));
  }
  int64_t Find(uint64_t hash, int64_t key) const;
  bool Has(int64_t row) const { return row < index_.size(); }
  float* values(int64_t row) { return values_.At(row); }
  float* slot(int slot, int64_t row) { return slots_[slot].At(row); }
  // Notes that a row was used. Others may do so, too.
  void Touch(int64_t row, int64_t step) {
    __atomic_store_n(versions_.At(row), Version(step), __ATOMIC_RELAXED);
  }

  void AddSlot(float initial);
  void Clear();

  // Removes rows, and keys that wait for one, that were not used for more than `steps_to_live`
  // steps.
  void Evict(int64_t step, int64_t steps_to_live);

  // Copies everything to the targets, from these places on.
  void Export(const RowTargets& to, int64_t row, int64_t filtered) const;

  // Adds one row of a source; false if its key is there already.
  bool Import(const RowSources& from, int64_t i);
  void ImportFiltered(const RowSources& from, int64_t i);

  int64_t bloom_words() const { return bloom_.words(); }
  void ExportBloom(int64_t* to) const { bloom_.Export(to); }
  void ImportBloom(const int64_t* from) { bloom_.Import(from); }

  // These take the lock.
  int64_t rows();
  int64_t filtered();
  int64_t bytes();

 private:
  auto KeyOf() const {
    return [this](int64_t row) { return *keys_.At(row); };
  }
  int64_t Append(uint64_t hash, int64_t key, const float* values);
  void Count(const LookupBatch& batch, const int32_t* at, int64_t count);
  void FetchBlock(const int64_t* keys, const int32_t* at, int64_t count, uint64_t* hashes) const;
  void ReadRow(const LookupBatch& batch, int32_t at, uint64_t hash);
  void SumByRow(const UpdateBatch& batch, const int32_t* at, int64_t count,
                UpdateScratch* scratch);

  const TableOptions options_;
  // The innermost lock; taken with the table's lock held, shared. Guards all below, as does the
  // table's lock held exclusively.
  std::mutex mu_;
  KeyIndex index_;
  RowColumn<int64_t> keys_;
  RowColumn<float> values_;
  RowColumn<uint32_t> freqs_;      // without room if not kept
  RowColumn<int64_t> versions_;    // likewise
  std::vector<RowColumn<float>> slots_;
  std::vector<float> slot_initials_;
  WaitingKeys waiting_;
  BloomCounts bloom_;
};

inline int64_t TableShard::Find(uint64_t hash, int64_t key) const {
  return index_.Find(hash, key, KeyOf());
}

}  // namespace workbench

#endif  // WORKBENCH_TABLE_EMBEDDING_TABLE_SHARD_H_
