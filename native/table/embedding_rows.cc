#include "table/embedding_rows.h"

#include <algorithm>

#include "instructions/prefetch.h"

namespace workbench {
namespace {

// Keys between the steps of a search: the index is asked for, then the row that it names first, and
// then the key is compared. Each waits for the memory, of many keys at a time.
constexpr int64_t kIndexAhead = 24;
constexpr int64_t kRowAhead = 12;
constexpr int64_t kHashes = 32;  // that are kept meanwhile
static_assert(kIndexAhead < kHashes && (kHashes & (kHashes - 1)) == 0, "a ring");

int64_t NumberOf(int64_t row, int shard) { return row * kTableShards + shard; }

}  // namespace

int64_t EmbeddingRows::Find(const KeyBatch& batch, int64_t* numbers, const float** vectors) const {
  const int64_t count = batch.count, dim = options().dim;
  uint64_t hashes[kHashes];
  TableShard* shards[kHashes];
  int64_t missing = 0;
  for (int64_t i = 0; i < count + kIndexAhead; ++i) {
    if (i < count) {
      const int64_t at = i % kHashes, key = batch.keys[i];
      shards[at] = table_->shards_[ShardOf(key)].get();
      hashes[at] = shards[at]->Hash(key);
      shards[at]->FetchIndex(hashes[at]);
    }
    const int64_t guessed = i - (kIndexAhead - kRowAhead);
    if (guessed >= 0 && guessed < count) {
      shards[guessed % kHashes]->FetchRow(hashes[guessed % kHashes], vectors != nullptr);
    }
    const int64_t found = i - kIndexAhead;
    if (found < 0) continue;
    const int64_t key = batch.keys[found];
    TableShard* const shard = shards[found % kHashes];
    const int64_t row = shard->Find(hashes[found % kHashes], key);
    if (row == kNone) {
      ++missing;
      numbers[found] = kNone;
      if (vectors != nullptr) {
        vectors[found] = DefaultRow(batch.default_rows, batch.default_count, key, dim);
      }
      continue;
    }
    numbers[found] = NumberOf(row, ShardOf(key));
    if (vectors != nullptr) vectors[found] = shard->values(row);
    if (options().keep_versions && !batch.read_only) shard->Touch(row, batch.step);
  }
  return missing;
}

void EmbeddingRows::Add(const KeyBatch& batch) const {
  const InRoom room(&table_->rooms_, EmbeddingTable::ByKeyRoom());
  for (int64_t i = 0; i < batch.count; ++i) {
    const int64_t key = batch.keys[i];
    table_->shards_[ShardOf(key)]->AddIfMissing(
        key, DefaultRow(batch.default_rows, batch.default_count, key, options().dim));
  }
}

void EmbeddingRows::Places(const int64_t* numbers, int64_t count, const std::vector<int>& slots,
                           RowPlace* places) const {
  const int64_t row_bytes = options().dim * static_cast<int64_t>(sizeof(float));
  for (int64_t i = 0; i < count; ++i) {
    RowPlace& place = places[i];
    place.values = nullptr;
    if (numbers[i] < 0) continue;
    TableShard& shard = *table_->shards_[numbers[i] % kTableShards];
    const int64_t row = numbers[i] / kTableShards;
    if (!shard.Has(row)) continue;
    place.values = shard.values(row);
    Prefetch<3>(place.values, row_bytes);
    for (size_t s = 0; s < slots.size(); ++s) {
      place.slots[s] = shard.slot(slots[s], row);
      Prefetch<3>(place.slots[s], row_bytes);
    }
  }
}

}  // namespace workbench
