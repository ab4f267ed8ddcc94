#ifndef WORKBENCH_TABLE_EMBEDDING_ROWS_H_
#define WORKBENCH_TABLE_EMBEDDING_ROWS_H_

// Rows of an embedding table where they lie: found by key once, then read and changed by number.

#include <cstdint>
#include <shared_mutex>
#include <vector>

#include "table/embedding_table.h"

namespace workbench {

// What a lookup in place does with keys.
struct KeyBatch {
  const int64_t* keys = nullptr;  // [count], duplicates allowed
  int64_t count = 0;
  int64_t step = kNoVersion;
  bool read_only = false;               // leave versions as they are
  const float* default_rows = nullptr;  // [default_count, dim]; key k starts as row k mod count
  int64_t default_count = 0;
};

// A row and what an optimizer keeps beside it.
struct RowPlace {
  static constexpr int kMostSlots = 2;
  float* values = nullptr;  // null: there is no such row
  float* slots[kMostSlots] = {};
};

// The rows of a table that has no filter. It shares the table's lock, so that no row moves or goes
// as long as it lives. A thread holds one of a table at most, takes those of several tables in the
// order of their addresses, and waits for no other thread that may take one meanwhile.
//
// What reads rows, or changes them, does so in a room of the table: any number of threads read, or
// change rows by key, or are in the room of one EmbeddingRows, and nobody else is there meanwhile.
class EmbeddingRows {
 public:
  explicit EmbeddingRows(EmbeddingTable* table) : table_(table), shared_(table->lock_) {}

  // Numbers stand for the same rows as long as this is the same. No two tables ever have the same.
  int64_t generation() const { return table_->generation_; }
  const TableOptions& options() const { return table_->options_; }

  // Calls `read`, in which Find may be called, while no row changes.
  template <typename Read>
  void Reading(const Read& read) const {
    const InRoom room(&table_->rooms_, EmbeddingTable::ReadingRoom());
    read();
  }

  // Finds rows; returns of how many keys there is none. Those have number kNone, and what they
  // would start as.
  //
  //   numbers: [count]. vectors: [count], where the values lie; or null.
  int64_t Find(const KeyBatch& batch, int64_t* numbers, const float** vectors) const;

  // Adds the rows that are missing, in the order of their keys. Not while reading or changing.
  void Add(const KeyBatch& batch) const;

  // Calls `change`, in which Places may be called, while no other thread reads or changes rows but
  // those that do it through this. Each row is for one of them to change.
  template <typename Change>
  void Changing(const Change& change) const {
    const InRoom room(&table_->rooms_, this);
    change();
  }

  // Says where rows with these numbers lie, and asks the memory for them. Any number will do.
  //
  //   slots: at most RowPlace::kMostSlots, as FindSlots returned them.
  void Places(const int64_t* numbers, int64_t count, const std::vector<int>& slots,
              RowPlace* places) const;

  static constexpr int64_t kNone = KeyIndex::kNone;

 private:
  EmbeddingTable* const table_;
  const std::shared_lock<TableLock> shared_;
};

}  // namespace workbench

#endif  // WORKBENCH_TABLE_EMBEDDING_ROWS_H_
