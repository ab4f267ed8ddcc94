#include "table/embedding_table.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <atomic>
#include <utility>

namespace workbench {
namespace {

// Of all tables: numbers of one are never taken for those of another.
int64_t NextGeneration() {
  static std::atomic<int64_t> next{0};
  return next.fetch_add(1, std::memory_order_relaxed);
}

// The positions of a batch's keys, by shard and in their order.
class KeysByShard {
 public:
  KeysByShard(const int64_t* keys, int64_t count) : positions_(count) {
    std::vector<uint8_t> shards(count);
    for (int64_t i = 0; i < count; ++i) {
      shards[i] = static_cast<uint8_t>(ShardOf(keys[i]));
      ++begins_[shards[i] + 1];
    }
    for (int s = 0; s < kTableShards; ++s) begins_[s + 1] += begins_[s];
    std::array<int64_t, kTableShards> next;
    std::copy_n(begins_.begin(), kTableShards, next.begin());
    for (int64_t i = 0; i < count; ++i) positions_[next[shards[i]]++] = static_cast<int32_t>(i);
  }

  const int32_t* positions(int shard) const { return positions_.data() + begins_[shard]; }
  int64_t count(int shard) const { return begins_[shard + 1] - begins_[shard]; }

 private:
  std::vector<int32_t> positions_;
  std::array<int64_t, kTableShards + 1> begins_{};
};

// The C library keeps small blocks that were freed, for this process alone.
void ReturnMemory(int64_t freed) {
#ifdef __GLIBC__
  constexpr int64_t kWorthIt = int64_t{16} << 20;
  if (freed >= kWorthIt) malloc_trim(0);
#else
  static_cast<void>(freed);
#endif
}

constexpr int64_t kBloomHead = 3;  // words

bool Belongs(int64_t key, const KeyPart& part) {
  const int64_t left = key % 1000;
  return (left < 0 ? left + 1000 : left) % part.count == part.part;
}

// Pointers by the table's slots from those by what the caller named.
template <typename Pointer>
std::vector<Pointer> BySlot(const std::vector<Pointer>& given, const std::vector<int>& numbers,
                            size_t slots) {
  std::vector<Pointer> pointers(slots, nullptr);
  for (size_t i = 0; i < given.size(); ++i) pointers[numbers[i]] = given[i];
  return pointers;
}

}  // namespace

const void* EmbeddingTable::ByKeyRoom() {
  static const char room = 0;
  return &room;
}

const void* EmbeddingTable::ReadingRoom() {
  static const char room = 0;
  return &room;
}

EmbeddingTable::EmbeddingTable(const TableOptions& options, uint64_t seed)
    : options_(options), generation_(NextGeneration()) {
  for (auto& shard : shards_) shard = std::make_unique<TableShard>(options, seed);
}

void EmbeddingTable::Lookup(const LookupBatch& batch, const ForShards& threads) {
  std::shared_lock<TableLock> shared(lock_);
  const KeysByShard keys(batch.keys, batch.count);
  threads([&](int begin, int end) {
    const InRoom room(&rooms_, ByKeyRoom());
    for (int s = begin; s < end; ++s) {
      if (keys.count(s) > 0) shards_[s]->Lookup(batch, keys.positions(s), keys.count(s));
    }
  });
}

std::string EmbeddingTable::FindSlots(const std::vector<Slot>& wanted,
                                      std::vector<int>* numbers) {
  const auto find = [&] {
    numbers->clear();
    for (const Slot& slot : wanted) {
      const auto found = std::find_if(slots_.begin(), slots_.end(),
                                      [&](const Slot& s) { return s.name == slot.name; });
      numbers->push_back(found == slots_.end() ? -1 : static_cast<int>(found - slots_.begin()));
    }
    return std::find(numbers->begin(), numbers->end(), -1) == numbers->end();
  };
  const auto mismatch = [&]() -> std::string {
    for (size_t i = 0; i < wanted.size(); ++i) {
      const Slot& slot = slots_[(*numbers)[i]];
      if (SameNumber(slot.initial, wanted[i].initial)) continue;
      return "slot '" + slot.name + "' starts at " + std::to_string(slot.initial) +
             " in the rows that are there, but this graph has it start at " +
             std::to_string(wanted[i].initial) + "; give one optimizer another name";
    }
    return "";
  };
  {
    std::shared_lock<TableLock> shared(lock_);
    if (find()) return mismatch();
  }
  std::unique_lock<TableLock> alone(lock_);
  for (const Slot& slot : wanted) {
    if (std::any_of(slots_.begin(), slots_.end(),
                    [&](const Slot& s) { return s.name == slot.name; })) {
      continue;
    }
    slots_.push_back(slot);
    for (auto& shard : shards_) shard->AddSlot(slot.initial);
  }
  find();
  return mismatch();
}

void EmbeddingTable::Update(const UpdateBatch& batch, const std::vector<int>& slots,
                            const UpdateRule& rule, const ForShards& threads) {
  std::shared_lock<TableLock> shared(lock_);
  const KeysByShard keys(batch.keys, batch.count);
  threads([&](int begin, int end) {
    UpdateScratch scratch;
    const InRoom room(&rooms_, ByKeyRoom());
    for (int s = begin; s < end; ++s) {
      if (keys.count(s) == 0) continue;
      shards_[s]->Update(batch, slots, rule, keys.positions(s), keys.count(s), &scratch);
    }
  });
}

void EmbeddingTable::Export(const Eviction& eviction, const std::vector<int>& slots,
                            const std::function<bool(const TableSizes&, RowTargets*)>& allocate,
                            const ForShards& threads) {
  std::unique_lock<TableLock> alone(lock_);
  if (options_.keep_versions && eviction.steps_to_live > 0) {
    const int64_t before = BytesAlone();
    for (auto& shard : shards_) shard->Evict(eviction.step, eviction.steps_to_live);
    generation_ = NextGeneration();
    ReturnMemory(before - BytesAlone());
  }
  TableSizes sizes;
  std::array<TableSizes, kTableShards> starts;
  for (int s = 0; s < kTableShards; ++s) {
    starts[s] = sizes;
    sizes.rows += shards_[s]->rows();
    sizes.filtered += shards_[s]->filtered();
  }
  sizes.bloom_words = BloomWords();
  RowTargets to;
  if (!allocate(sizes, &to)) return;
  if (to.bloom != nullptr) ExportBloom(to.bloom);
  to.slots = BySlot(to.slots, slots, slots_.size());
  threads([&](int begin, int end) {
    for (int s = begin; s < end; ++s) shards_[s]->Export(to, starts[s].rows, starts[s].filtered);
  });
}

std::string EmbeddingTable::Import(const RowSources& sources, int64_t rows, int64_t filtered,
                                   int64_t bloom_words, const std::vector<int>& slots,
                                   const KeyPart& part, const ForShards& threads) {
  const KeysByShard keys(sources.keys, rows);
  const KeysByShard filtered_keys(sources.filtered_keys, filtered);
  std::unique_lock<TableLock> alone(lock_);
  ClearAlone();
  RowSources from = sources;
  from.slots = BySlot(sources.slots, slots, slots_.size());
  if (from.bloom != nullptr) ImportBloom(from.bloom, bloom_words, part);
  std::array<int64_t, kTableShards> twice;  // position of a key that comes again
  twice.fill(-1);
  threads([&](int begin, int end) {
    for (int s = begin; s < end; ++s) {
      for (int64_t i = 0; i < keys.count(s); ++i) {
        const int64_t at = keys.positions(s)[i];
        if (Belongs(from.keys[at], part) && !shards_[s]->Import(from, at)) twice[s] = at;
      }
      for (int64_t i = 0; i < filtered_keys.count(s); ++i) {
        const int64_t at = filtered_keys.positions(s)[i];
        if (Belongs(from.filtered_keys[at], part)) shards_[s]->ImportFiltered(from, at);
      }
    }
  });
  const auto found = std::find_if(twice.begin(), twice.end(), [](int64_t at) { return at >= 0; });
  if (found == twice.end()) return "";
  ClearAlone();
  return "key " + std::to_string(sources.keys[*found]) + " stands at two places of " +
         std::to_string(rows) + " rows; expected each key once";
}

// Before the counters stands what they are of.
int64_t EmbeddingTable::BloomWords() const {
  if (options_.bloom_counters == 0) return 0;
  return kBloomHead + kTableShards * shards_[0]->bloom_words();
}

void EmbeddingTable::ExportBloom(int64_t* to) const {
  *to++ = options_.bloom_counters;
  *to++ = options_.bloom_hashes;
  *to++ = options_.bloom_bytes;
  for (int s = 0; s < kTableShards; ++s) {
    shards_[s]->ExportBloom(to + s * shards_[s]->bloom_words());
  }
}

void EmbeddingTable::ImportBloom(const int64_t* from, int64_t words, const KeyPart& part) {
  const int64_t each = BloomWords();
  if (each == 0 || words % each != 0 || words / each != part.count || part.part >= part.count) {
    return;
  }
  from += part.part * each;
  if (from[0] != options_.bloom_counters || from[1] != options_.bloom_hashes ||
      from[2] != options_.bloom_bytes) {
    return;
  }
  for (int s = 0; s < kTableShards; ++s) {
    shards_[s]->ImportBloom(from + kBloomHead + s * shards_[s]->bloom_words());
  }
}

void EmbeddingTable::Clear() {
  std::unique_lock<TableLock> alone(lock_);
  ClearAlone();
}

void EmbeddingTable::ClearAlone() {
  const int64_t before = BytesAlone();
  generation_ = NextGeneration();
  for (auto& shard : shards_) shard->Clear();
  ReturnMemory(before - BytesAlone());
}

int64_t EmbeddingTable::BytesAlone() {
  int64_t bytes = 0;
  for (auto& shard : shards_) bytes += shard->bytes();
  return bytes;
}

TableSizes EmbeddingTable::Sizes() {
  std::shared_lock<TableLock> shared(lock_);
  TableSizes sizes;
  for (auto& shard : shards_) {
    sizes.rows += shard->rows();
    sizes.filtered += shard->filtered();
    sizes.bytes += shard->bytes();
  }
  return sizes;
}

}  // namespace workbench
