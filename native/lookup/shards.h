#ifndef WORKBENCH_LOOKUP_SHARDS_H_
#define WORKBENCH_LOOKUP_SHARDS_H_

// Which shard of a partitioned table holds an id, and at which row.

#include <cstdint>
#include <string>
#include <vector>

namespace workbench {

enum class PartitionStrategy {
  kDiv,    // shards hold ranges of ids, by the rows that each really has
  kMod,    // id % shards, row id / shards
  kModKey  // (id % 1000) % shards, the id itself is the key: shards of an EmbeddingVariable
};

class Shards {
 public:
  // rows: of each shard, together no more than int64 counts; -1 where any key may be asked for.
  Shards(PartitionStrategy strategy, std::vector<int64_t> rows);

  int count() const { return static_cast<int>(rows_.size()); }

  // Ids of the whole table; -1 where any key may be asked for.
  int64_t total() const { return total_; }

  // Finds an id; false where no shard has it.
  bool Find(int64_t id, int* shard, int64_t* row) const {
    if (total_ < 0) return FindKey(id, shard, row);
    if (id < 0) return false;
    if (strategy_ == PartitionStrategy::kDiv) return FindInRange(id, shard, row);
    *shard = static_cast<int>(id % count());
    *row = id / count();
    return *row < rows_[*shard];
  }

 private:
  bool FindKey(int64_t id, int* shard, int64_t* row) const {
    const int64_t left = id % 1000;
    *shard = static_cast<int>((left < 0 ? left + 1000 : left) % count());
    *row = id;
    return true;
  }

  bool FindInRange(int64_t id, int* shard, int64_t* row) const {
    if (id >= total_) return false;
    // Shards are mostly alike, so that the guess is right or next to it.
    int s = static_cast<int>(id / even_);
    if (s >= count()) s = count() - 1;
    while (id < starts_[s]) --s;
    while (id >= starts_[s + 1]) ++s;
    *shard = s;
    *row = id - starts_[s];
    return true;
  }

  PartitionStrategy strategy_;
  std::vector<int64_t> rows_;
  std::vector<int64_t> starts_;  // of each range of ids, and the end
  int64_t total_ = 0;
  int64_t even_ = 1;
};

// Splits ids over shards.
//
//   order: in which the shards' lists have them, [count]; null: as they come.
//   permutation: [count, 2], shard and position in the shard's list of each id.
//   counts: [shards], ids of each shard.
//
// Returns the position of an id that no shard has, -1 if each has one.
template <typename Id>
int64_t FindShards(const Shards& shards, const Id* ids, int64_t count, const int32_t* order,
                   int32_t* permutation, int64_t* counts);

// Writes each shard's list of its own row numbers; `permutation` as FindShards made it.
template <typename Id>
void ListRows(const Shards& shards, const Id* ids, int64_t count, const int32_t* permutation,
              Id* const* lists);

}  // namespace workbench

#endif  // WORKBENCH_LOOKUP_SHARDS_H_
