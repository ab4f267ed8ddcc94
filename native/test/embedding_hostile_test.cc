// What a table, and what a batch, may be handed by one who means ill.

#include <chrono>
#include <limits>
#include <random>
#include <vector>

#include "embedding/combine.h"
#include "embedding/embedding_table.h"
#include "embedding/row_ids.h"
#include "embedding/shards.h"
#include "embedding/unique_ids.h"
#include "test/check.h"

namespace workbench {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

// The key whose hash, without a seed, is this.
int64_t KeyOfHash(uint64_t hash) {
  hash ^= hash >> 31 ^ hash >> 62;
  hash *= 0x319642b2d24d8ec3u;
  hash ^= hash >> 27 ^ hash >> 54;
  hash *= 0x96de1b173f119089u;
  hash ^= hash >> 30 ^ hash >> 60;
  return static_cast<int64_t>(hash - 0x9e3779b97f4a7c15u);
}

// Keys of one shard that, without a seed, all begin at one slot and look alike there.
std::vector<int64_t> CraftedKeys(int64_t count) {
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < count; ++i) {
    keys.push_back(KeyOfHash((static_cast<uint64_t>(i) << 32) & ((uint64_t{1} << 58) - 1)));
  }
  return keys;
}

// A table of one value a row, and everything that it exports.
struct Table {
  EmbeddingTable table;

  static TableOptions Options(int64_t filter_freq) {
    TableOptions options;
    options.filter_freq = filter_freq;
    options.keep_versions = true;
    return options;
  }
  explicit Table(uint64_t seed, int64_t filter_freq = 0) : table(Options(filter_freq), seed) {}

  std::vector<float> Look(const std::vector<int64_t>& keys, int64_t step = 0) {
    const float defaults[] = {1, 2, 3};
    std::vector<float> out(keys.size());
    LookupBatch batch;
    batch.keys = keys.data();
    batch.count = static_cast<int64_t>(keys.size());
    batch.default_rows = defaults;
    batch.default_count = 3;
    batch.step = step;
    batch.out = out.data();
    table.Lookup(batch, OnThisThread);
    return out;
  }

  std::vector<std::vector<int64_t>> Export(const Eviction& eviction = {}) {
    std::vector<std::vector<int64_t>> all(5);
    std::vector<float> values;
    table.Export(
        eviction, {},
        [&](const TableSizes& sizes, RowTargets* to) {
          for (int i : {0, 1, 2}) all[i].resize(sizes.rows);
          for (int i : {3, 4}) all[i].resize(sizes.filtered);
          values.resize(sizes.rows);
          to->keys = all[0].data();
          to->values = values.data();
          if (table.options().keep_freqs()) to->freqs = all[1].data();
          to->versions = all[2].data();
          to->filtered_keys = all[3].data();
          to->filtered_freqs = all[4].data();
          return true;
        },
        OnThisThread);
    return all;
  }

  void Import(const std::vector<std::vector<int64_t>>& all) {
    const std::vector<float> values(all[0].size(), 7);
    RowSources from;
    from.keys = all[0].data();
    from.values = values.data();
    from.freqs = all[1].data();
    from.versions = all[2].data();
    from.filtered_keys = all[3].data();
    from.filtered_freqs = all[4].data();
    CHECK_EQ(table.Import(from, static_cast<int64_t>(all[0].size()),
                          static_cast<int64_t>(all[3].size()), 0, {}, {}, OnThisThread),
             "");
  }
};

TEST(CraftedKeysCollideWithoutASeed) {
  for (const int64_t key : CraftedKeys(100)) {
    CHECK_EQ(HashKey(key, 0) >> 58, 0u);
    CHECK_EQ(HashKey(key, 0) & 0xffffffffu, 0u);
  }
}

TEST(CraftedKeysAreFoundAsFastAsOthers) {
  const std::vector<int64_t> crafted = CraftedKeys(50'000);
  int64_t looks = 0;
  const auto key_of = [&](int64_t row) {
    ++looks;
    return crafted[row];
  };
  KeyIndex index(RandomSeed());
  for (const int64_t key : crafted) {
    CHECK_EQ(index.Find(index.Hash(key), key, key_of), KeyIndex::kNone);
    index.Append(index.Hash(key), key_of);
  }
  CHECK(looks < 10 * static_cast<int64_t>(crafted.size()));  // without a seed 1.25 billion
  Table table(RandomSeed(), 2);
  table.Look(crafted);
  CHECK_EQ(table.table.Sizes().filtered, static_cast<int64_t>(crafted.size()));
}

TEST(CraftedIdsAreUniqueAsFastAsOthers) {
  // The inverse of the hash's steps, of numbers that share their low bits.
  std::vector<int64_t> ids;
  for (uint64_t i = 0; i < 200'000; ++i) {
    uint64_t key = i << 32;
    key = (key ^ key >> 33) * 0x9cb4b2f8129337dbu;
    key = (key ^ key >> 33) * 0x4f74430c22a54005u;
    ids.push_back(static_cast<int64_t>(key ^ key >> 33));
  }
  const int64_t count = static_cast<int64_t>(ids.size());
  std::vector<int32_t> slots(UniqueSlots(count)), index(count), counts(count);
  std::vector<int64_t> unique(count);
  const auto start = std::chrono::steady_clock::now();
  CHECK_EQ(UniqueIds(ids.data(), count, slots.data(), unique.data(), index.data(), counts.data()),
           count);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(3));
  CHECK(unique == ids);
}

TEST(ExportsDoNotDependOnTheSeed) {
  std::mt19937_64 random(3);
  Table one(1, 2), other(2, 2);
  for (int64_t step = 0; step < 30; ++step) {
    std::vector<int64_t> keys(500);
    for (int64_t& key : keys) key = static_cast<int64_t>(random() % 3000) * 7919;
    CHECK(one.Look(keys, step) == other.Look(keys, step));
    if (step % 10 == 9) CHECK(one.Export({step, 5}) == other.Export({step, 5}));
  }
  CHECK(one.Export()[0].size() > 500);
}

TEST(NumbersOfACheckpointAreClamped) {
  Table table(1, 3);
  table.Import({{1, 2, 3, 4},
                {kMost, kLeast, 5, 6},
                {kLeast, kMost, -7, 2},
                {10, 10, 11, 12},
                {kMost, kMost, kLeast, 2}});
  const auto all = table.Export();
  for (size_t i = 0; i < 4; ++i) {
    CHECK(all[1][i] >= 0 && all[1][i] <= kMostFreq);
    CHECK(all[2][i] >= kNoVersion);
  }
  for (const int64_t freq : all[4]) CHECK(freq >= 0 && freq <= kMostFreq);
  table.Look({1, 1, 10, 11, 12}, kLeast);
  CHECK_EQ(table.Export()[0].size(), 6u);
  // A version of the future, or none, begins now; no step overflows.
  CHECK_EQ(table.Export({kLeast, kMost})[0].size(), 6u);
  CHECK_EQ(table.Export({100, 5})[0].size(), 6u);
  CHECK_EQ(table.Export({106, 5})[0].size(), 0u);
}

TEST(ShardsOfAllIdsThereAre) {
  const Shards shards(PartitionStrategy::kDiv, {kMost - 5, 5});
  int shard = 0;
  int64_t row = 0;
  CHECK(shards.Find(kMost - 1, &shard, &row));
  CHECK_EQ(shard, 1);
  CHECK_EQ(row, 4);
  CHECK(!shards.Find(kMost, &shard, &row));
}

TEST(SizesBeforeOneOfZeroMayBeAnything) {
  const int64_t shape[] = {kMost, kMost, 0, 3}, at[] = {kMost - 1, kMost - 1, 0, 0}, id = 1;
  SparseIds<int64_t> in;
  in.ids = &id;
  in.indices = at;
  in.count = 1;
  in.dense_shape = shape;
  in.rank = 4;
  CHECK_EQ(RowCount(shape, 4), 0);
  int32_t splits[1];
  CHECK_HAS(SplitRows(in, KeepRules(), 0, splits), "outside dense_shape");
}

TEST(NoTwoIdsShareAVector) {
  const int64_t vectors[] = {2, 1};
  const Sizes sizes{3, 3, 2, vectors};
  const int32_t good[] = {0, 1, 1, 0, 0, 0}, bad[] = {0, 1, 1, 0, 0, 1};
  CHECK_EQ(Shared(sizes, good), "");
  CHECK_EQ(Shared(sizes, bad),
           "permutation[2] is [0, 1], which another id has; expected each vector once");
}

}  // namespace
}  // namespace workbench
