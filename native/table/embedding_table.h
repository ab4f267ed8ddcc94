#ifndef WORKBENCH_TABLE_EMBEDDING_TABLE_H_
#define WORKBENCH_TABLE_EMBEDDING_TABLE_H_

// A table of rows by key that grows with its keys; any thread may use it.
//
// An export, and its order, depends on the calls alone: the random seed of a table's hash chooses
// no shard.
//
// Lock order: the table's lock, then that of its rooms, then one shard's. A batch shares the table's
// lock, and locks one shard after another in the room of those that find rows by key, or is in a
// room of those that read or change rows in place (embedding_rows.h); a call that changes the table
// as a whole holds the table's lock exclusively.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hashing/random_seed.h"
#include "table/embedding_table_lock.h"
#include "table/embedding_table_shard.h"
#include "table/room_lock.h"
#include "threading/guarded_by.h"

namespace workbench {

inline int ShardOf(int64_t key) { return static_cast<int>(HashKey(key, 0) >> 58); }
static_assert(kTableShards == 64, "ShardOf takes 6 bits");

// Runs work(begin, end) for ranges that cover all shards, on any threads, and waits for it.
using ForShards = std::function<void(const std::function<void(int, int)>&)>;

inline void OnThisThread(const std::function<void(int, int)>& work) { work(0, kTableShards); }

struct TableSizes {
  int64_t rows = 0;
  int64_t filtered = 0;     // keys that wait for filter_freq
  int64_t bloom_words = 0;  // of the Bloom filter in an export, its shape included; 0: no filter
  int64_t bytes = 0;        // memory of everything
};

// Which rows are removed before an export.
struct Eviction {
  int64_t step = kNoVersion;
  int64_t steps_to_live = 0;  // 0: none
};

// Which keys of an import belong here: those with (key mod 1000) mod count == part.
struct KeyPart {
  int64_t part = 0;
  int64_t count = 1;
};

class EmbeddingTable {
 public:
  explicit EmbeddingTable(const TableOptions& options, uint64_t seed = RandomSeed());

  const TableOptions& options() const { return options_; }

  // Writes each key's row to batch.out; adds the rows that are missing, unless read_only. The
  // result does not depend on the threads.
  void Lookup(const LookupBatch& batch, const ForShards& threads);

  // Finds slots by name, and adds those that are missing, with their initial value in every row.
  // Returns an error if a slot has another initial value, else an empty text.
  std::string FindSlots(const std::vector<Slot>& wanted, std::vector<int>* numbers);

  // Sums each key's gradients, then changes its row once. Keys without a row are skipped. `slots`:
  // the rule's, as FindSlots returned them.
  void Update(const UpdateBatch& batch, const std::vector<int>& slots, const UpdateRule& rule,
              const ForShards& threads);

  // Copies everything, as it is at one moment. `allocate` gets the sizes and sets the targets,
  // those of slots in the order of `slots`; if it returns false nothing is copied.
  void Export(const Eviction& eviction, const std::vector<int>& slots,
              const std::function<bool(const TableSizes&, RowTargets*)>& allocate,
              const ForShards& threads);

  // Replaces everything. Sources of slots are in the order of `slots`; other slots get their
  // initial values. Returns an error if a key comes twice (then the table is empty), else an empty
  // text. `bloom_words` are those of all parts of the export: a table with the same filter takes
  // its own, any other starts to count from 0.
  std::string Import(const RowSources& from, int64_t rows, int64_t filtered, int64_t bloom_words,
                     const std::vector<int>& slots, const KeyPart& part, const ForShards& threads);

  void Clear();
  TableSizes Sizes();

 private:
  friend class EmbeddingRows;
  // The rooms of those that work key by key under a shard's lock, and of those that only read.
  static const void* ByKeyRoom();
  static const void* ReadingRoom();
  // With lock_ held exclusively.
  void ClearAlone();
  int64_t BytesAlone();
  int64_t BloomWords() const;
  void ExportBloom(int64_t* to) const;
  void ImportBloom(const int64_t* from, int64_t words, const KeyPart& part);

  const TableOptions options_;
  TableLock lock_;
  RoomLock rooms_;
  // Of the rows' numbers; another one whenever rows may move or go.
  int64_t generation_ WORKBENCH_GUARDED_BY(lock_);
  std::vector<Slot> slots_ WORKBENCH_GUARDED_BY(lock_);
  std::array<std::unique_ptr<TableShard>, kTableShards> shards_;
};

}  // namespace workbench

#endif  // WORKBENCH_TABLE_EMBEDDING_TABLE_H_
