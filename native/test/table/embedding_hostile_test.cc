// Keys, and a checkpoint, crafted to break a table.

#include <limits>
#include <random>
#include <vector>

#include "table/embedding_table.h"
#include "test/support/check.h"

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

}  // namespace
}  // namespace workbench
