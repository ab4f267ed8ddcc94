#ifndef WORKBENCH_TABLE_EMBEDDING_TABLE_H_
#define WORKBENCH_TABLE_EMBEDDING_TABLE_H_

// A table of rows by key that grows with the keys it sees; any thread may use it.
//
// What an export gives, and in which order, follows from the calls alone: the seed of a table's hash
// chooses no shard.
//
// Lock order: the table's lock, then one shard's. A batch has the table shared and locks one shard
// after another; what changes the table as a whole has it alone.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "table/embedding_table_lock.h"
#include "table/embedding_table_shard.h"
#include "hashing/random_seed.h"

namespace workbench {

// Runs work(begin, end) for ranges that cover all shards, on any threads, and waits for it.
using ForShards = std::function<void(const std::function<void(int, int)>&)>;

inline void OnThisThread(const std::function<void(int, int)>& work) { work(0, kTableShards); }

struct TableSizes {
  int64_t rows = 0;
  int64_t filtered = 0;     // keys that wait for filter_freq
  int64_t bloom_words = 0;  // of the Bloom filter in an export, with what says its shape; 0: none
  int64_t bytes = 0;        // memory of everything
};

// Which rows leave before an export.
struct Eviction {
  int64_t step = kNoVersion;
  int64_t steps_to_live = 0;  // 0: none leaves
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

  // Writes each key's row to batch.out; makes the rows that are missing, unless read_only. The
  // outcome is the same for any threads.
  void Lookup(const LookupBatch& batch, const ForShards& threads);

  // Finds slots by name, makes those that are missing; rows get their initial value. Says what is
  // wrong when a slot has another initial value, empty if nothing is.
  std::string FindSlots(const std::vector<Slot>& wanted, std::vector<int>* numbers);

  // Sums each key's gradients, then changes its row once. Keys without a row are left out. `slots`
  // are what the rule needs, as FindSlots gave them.
  void Update(const UpdateBatch& batch, const std::vector<int>& slots, const UpdateRule& rule,
              const ForShards& threads);

  // Copies everything out, as it stood at one moment. `allocate` is told the sizes and sets where
  // to; it may say no. Slots' targets are in the order of `slots`.
  void Export(const Eviction& eviction, const std::vector<int>& slots,
              const std::function<bool(const TableSizes&, RowTargets*)>& allocate,
              const ForShards& threads);

  // Replaces everything. Sources of slots are in the order of `slots`; other slots start anew.
  // Says what is wrong when a key comes twice (the table is empty then), empty if nothing is.
  // `bloom_words` are those of all the parts that the export was of: a table of the same filter
  // takes its own, and any other begins to count anew.
  std::string Import(const RowSources& from, int64_t rows, int64_t filtered, int64_t bloom_words,
                     const std::vector<int>& slots, const KeyPart& part, const ForShards& threads);

  void Clear();
  TableSizes Sizes();

 private:
  void ClearAlone();
  int64_t BytesAlone();
  int64_t BloomWords() const;
  void ExportBloom(int64_t* to) const;
  void ImportBloom(const int64_t* from, int64_t words, const KeyPart& part);

  const TableOptions options_;
  TableLock lock_;
  std::vector<Slot> slots_;
  std::array<std::unique_ptr<TableShard>, kTableShards> shards_;
};

}  // namespace workbench

#endif  // WORKBENCH_TABLE_EMBEDDING_TABLE_H_
