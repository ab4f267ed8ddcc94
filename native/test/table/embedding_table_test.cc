#include "table/embedding_table.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <unordered_map>
#include <vector>

#include "test/support/check.h"

namespace workbench {
namespace {

constexpr int64_t kDim = 3;
constexpr int64_t kDefaults = 5;

std::vector<float> DefaultRows() {
  std::vector<float> rows;
  for (int64_t i = 0; i < kDefaults * kDim; ++i) rows.push_back(static_cast<float>(i));
  return rows;
}

std::vector<float> DefaultOf(int64_t key) {
  const int64_t row = ((key % kDefaults) + kDefaults) % kDefaults;
  std::vector<float> values;
  for (int64_t d = 0; d < kDim; ++d) values.push_back(static_cast<float>(row * kDim + d));
  return values;
}

TableOptions Plain() {
  TableOptions options;
  options.dim = kDim;
  return options;
}

std::vector<float> Look(EmbeddingTable* table, const std::vector<int64_t>& keys,
                        bool read_only = false, int64_t step = kNoVersion) {
  static const std::vector<float> defaults = DefaultRows();
  std::vector<float> out(keys.size() * kDim, -1);
  LookupBatch batch;
  batch.keys = keys.data();
  batch.count = static_cast<int64_t>(keys.size());
  batch.default_rows = defaults.data();
  batch.default_count = kDefaults;
  batch.read_only = read_only;
  batch.step = step;
  batch.out = out.data();
  table->Lookup(batch, OnThisThread);
  return out;
}

void Descend(EmbeddingTable* table, const std::vector<int64_t>& keys,
             const std::vector<float>& grads) {
  UpdateBatch batch;
  batch.keys = keys.data();
  batch.count = static_cast<int64_t>(keys.size());
  batch.grads = grads.data();
  GradientDescentRule rule;
  rule.learning_rate = 1;
  table->Update(batch, {}, rule, OnThisThread);
}

struct Exported {
  std::vector<int64_t> keys, freqs, versions, filtered_keys, filtered_freqs;
  std::vector<float> values;
  std::vector<std::vector<float>> slots;

  std::map<int64_t, std::vector<float>> ByKey() const {
    std::map<int64_t, std::vector<float>> rows;
    for (size_t i = 0; i < keys.size(); ++i) {
      rows[keys[i]].assign(values.begin() + i * kDim, values.begin() + (i + 1) * kDim);
    }
    return rows;
  }
};

Exported ExportAll(EmbeddingTable* table, const std::vector<int>& slots = {},
                   const Eviction& eviction = {}) {
  Exported all;
  table->Export(
      eviction, slots,
      [&](const TableSizes& sizes, RowTargets* to) {
        all.keys.resize(sizes.rows);
        all.values.resize(sizes.rows * kDim);
        all.freqs.resize(sizes.rows);
        all.versions.resize(sizes.rows);
        all.filtered_keys.resize(sizes.filtered);
        all.filtered_freqs.resize(sizes.filtered);
        to->keys = all.keys.data();
        to->values = all.values.data();
        if (table->options().keep_freqs()) to->freqs = all.freqs.data();
        if (table->options().keep_versions) to->versions = all.versions.data();
        to->filtered_keys = all.filtered_keys.data();
        to->filtered_freqs = all.filtered_freqs.data();
        for (size_t i = 0; i < slots.size(); ++i) all.slots.emplace_back(sizes.rows * kDim);
        for (auto& slot : all.slots) to->slots.push_back(slot.data());
        return true;
      },
      OnThisThread);
  return all;
}

std::string ImportAll(EmbeddingTable* table, const Exported& all, const std::vector<int>& slots,
                      const KeyPart& part = {}) {
  RowSources from;
  from.keys = all.keys.data();
  from.values = all.values.data();
  if (table->options().keep_freqs()) from.freqs = all.freqs.data();
  if (table->options().keep_versions) from.versions = all.versions.data();
  from.filtered_keys = all.filtered_keys.data();
  from.filtered_freqs = all.filtered_freqs.data();
  for (const auto& slot : all.slots) from.slots.push_back(slot.data());
  return table->Import(from, static_cast<int64_t>(all.keys.size()),
                       static_cast<int64_t>(all.filtered_keys.size()), 0, slots, part, OnThisThread);
}

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();

TEST(NewKeysStartWithTheirDefaultRow) {
  EmbeddingTable table(Plain());
  const std::vector<int64_t> keys = {0, 7, -1, -5, kLowest, 7, std::numeric_limits<int64_t>::max()};
  const std::vector<float> out = Look(&table, keys);
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::vector<float> expected = DefaultOf(keys[i]);
    for (int64_t d = 0; d < kDim; ++d) CHECK_EQ(out[i * kDim + d], expected[d]);
  }
  CHECK_EQ(table.Sizes().rows, 6);
}

TEST(ReadOnlyMakesNoRows) {
  EmbeddingTable table(Plain());
  CHECK(Look(&table, {3}, true) == DefaultOf(3));
  CHECK_EQ(table.Sizes().rows, 0);
}

TEST(NothingIsDoneWithoutKeys) {
  EmbeddingTable table(Plain());
  CHECK(Look(&table, {}).empty());
  Descend(&table, {}, {});
  CHECK_EQ(ExportAll(&table).keys.size(), 0u);
}

TEST(GradientsOfAKeyAreSummedInOrder) {
  EmbeddingTable table(Plain());
  Look(&table, {4, 9});
  // 1e8 + 1 is 1e8 in float, so that the order shows.
  const float big = 1e8f;
  Descend(&table, {4, 9, 4, 4, 100}, {1, 1, 1, 2, 2, 2, big, 0, 0, -big, 0, 0, 5, 5, 5});
  const std::vector<float> row = Look(&table, {4});
  const std::vector<float> start = DefaultOf(4);
  CHECK_EQ(row[0], start[0] - ((1 + big) - big));
  CHECK_EQ(row[1], start[1] - 1);
  CHECK_EQ(Look(&table, {9})[2], DefaultOf(9)[2] - 2);
  CHECK_EQ(table.Sizes().rows, 2);
}

TEST(ANotANumberStaysInItsRow) {
  EmbeddingTable table(Plain());
  Look(&table, {1, 2});
  Descend(&table, {1}, {NAN, 1, INFINITY});
  CHECK(std::isnan(Look(&table, {1})[0]));
  CHECK(Look(&table, {2}) == DefaultOf(2));
}

TEST(ItDoesWhatAMapDoes) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    EmbeddingTable table(Plain());
    std::unordered_map<int64_t, std::vector<float>> map;
    const int64_t range = round % 2 == 0 ? 50 : 100'000;
    std::uniform_int_distribution<int64_t> key_of(-range, range);
    for (int step = 0; step < 60; ++step) {
      std::vector<int64_t> keys(std::uniform_int_distribution<int>(0, 300)(random));
      for (int64_t& key : keys) key = key_of(random) * (round % 3 == 0 ? 1 << 20 : 1);
      const std::vector<float> out = Look(&table, keys);
      std::vector<float> grads;
      for (size_t i = 0; i < keys.size(); ++i) {
        const std::vector<float>& row = map.try_emplace(keys[i], DefaultOf(keys[i])).first->second;
        for (int64_t d = 0; d < kDim; ++d) CHECK_EQ(out[i * kDim + d], row[d]);
        for (int64_t d = 0; d < kDim; ++d) grads.push_back(static_cast<float>(random() % 16));
      }
      Descend(&table, keys, grads);
      for (size_t i = 0; i < keys.size() * kDim; ++i) map[keys[i / kDim]][i % kDim] -= grads[i];
    }
    CHECK_EQ(table.Sizes().rows, static_cast<int64_t>(map.size()));
    CHECK((ExportAll(&table).ByKey() ==
           std::map<int64_t, std::vector<float>>(map.begin(), map.end())));
  }
}

TEST(SlotsOfRowsThatAreThereStartToo) {
  EmbeddingTable table(Plain());
  Look(&table, {1, 2});
  std::vector<int> numbers;
  CHECK_EQ(table.FindSlots({{"accum", 0.5f}, {"linear", 0}}, &numbers), "");
  Look(&table, {3});
  const Exported all = ExportAll(&table, numbers);
  CHECK((all.slots[0] == std::vector<float>(3 * kDim, 0.5f)));
  CHECK((all.slots[1] == std::vector<float>(3 * kDim, 0)));
  std::vector<int> again;
  CHECK_EQ(table.FindSlots({{"linear", 0}}, &again), "");
  CHECK((again == std::vector<int>{1}));
  CHECK_HAS(table.FindSlots({{"accum", 0.1f}}, &again), "slot 'accum' starts at 0.5");
}

TEST(AnImportReplacesEverything) {
  EmbeddingTable table(Plain());
  std::vector<int> slots;
  table.FindSlots({{"accum", 0.5f}}, &slots);
  for (int64_t key = 0; key < 500; ++key) Look(&table, {key * 1'000'003});
  Exported all = ExportAll(&table, slots);
  all.slots[0][0] = 9;

  EmbeddingTable other(Plain());
  Look(&other, {-17});
  std::vector<int> other_slots;
  other.FindSlots({{"else", 1}, {"accum", 0.5f}}, &other_slots);
  CHECK_EQ(ImportAll(&other, all, {other_slots[1]}), "");
  const Exported back = ExportAll(&other, other_slots);
  CHECK(back.ByKey() == all.ByKey());
  CHECK((back.slots[0] == std::vector<float>(500 * kDim, 1)));
  CHECK(back.slots[1] == all.slots[0]);

  all.keys[3] = all.keys[4];
  CHECK_HAS(ImportAll(&other, all, {other_slots[1]}), "stands at two places of 500 rows");
  CHECK_EQ(other.Sizes().rows, 0);
}

TEST(PartsOfAnImportAreTheWhole) {
  EmbeddingTable table(Plain());
  for (int64_t key = -1500; key < 1500; key += 7) Look(&table, {key});
  const Exported all = ExportAll(&table);
  std::map<int64_t, std::vector<float>> together;
  for (int64_t part = 0; part < 3; ++part) {
    EmbeddingTable other(Plain());
    CHECK_EQ(ImportAll(&other, all, {}, {part, 3}), "");
    for (const auto& [key, row] : ExportAll(&other).ByKey()) {
      CHECK_EQ(((key % 1000) + 1000) % 1000 % 3, part);
      CHECK(together.emplace(key, row).second);
    }
  }
  CHECK(together == all.ByKey());
}

TEST(AKeyGetsItsRowWhenItCameOftenEnough) {
  TableOptions options = Plain();
  options.filter_freq = 3;
  options.no_permission = -8;
  EmbeddingTable table(options);
  const std::vector<float> none(kDim, -8);
  CHECK(Look(&table, {1}) == none);
  Descend(&table, {1}, {1, 1, 1});
  CHECK(Look(&table, {1}, true) == none);  // does not count
  CHECK(Look(&table, {1}) == none);
  CHECK_EQ(table.Sizes().filtered, 1);
  const std::vector<float> row = Look(&table, {2, 1, 2, 2});  // all of 2 in one batch
  for (int64_t d = 0; d < kDim; ++d) {
    CHECK_EQ(row[d], DefaultOf(2)[d]);
    CHECK_EQ(row[kDim + d], DefaultOf(1)[d]);
  }
  Look(&table, {5, 1});
  const Exported all = ExportAll(&table);
  CHECK_EQ(all.keys.size(), 2u);
  for (size_t i = 0; i < 2; ++i) CHECK_EQ(all.freqs[i], all.keys[i] == 1 ? 4 : 3);
  CHECK((all.filtered_keys == std::vector<int64_t>{5}));

  EmbeddingTable other(options);
  ImportAll(&other, all, {});
  Look(&other, {5});
  CHECK(Look(&other, {5}) == DefaultOf(5));  // the third time, over both tables
}

TEST(RowsThatWereNotUsedLeave) {
  TableOptions options = Plain();
  options.keep_versions = true;
  options.filter_freq = 1;
  EmbeddingTable table(options);
  std::map<int64_t, std::vector<float>> kept;
  for (int64_t key = 0; key < 3000; ++key) {
    const bool old = key % 3 == 0;
    Look(&table, {key}, false, old ? 10 : 12);
    Descend(&table, {key}, {static_cast<float>(key), 0, 0});
    if (!old) kept[key] = Look(&table, {key}, true);
  }
  CHECK_EQ(ExportAll(&table, {}, {15, 5}).keys.size(), 3000u);
  const int64_t before = table.Sizes().bytes;
  const Exported all = ExportAll(&table, {}, {16, 5});
  CHECK(all.ByKey() == kept);
  CHECK(table.Sizes().bytes < before);
  for (const auto& [key, row] : kept) CHECK(Look(&table, {key}, true) == row);
  CHECK_EQ(ExportAll(&table, {}, {100, 5}).keys.size(), 0u);
}

// Pages of this process that are in memory.
int64_t Resident() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * 4096;
}

TEST(MemoryIsGivenBack) {
  TableOptions options = Plain();
  options.keep_versions = true;
  options.filter_freq = 2;
  EmbeddingTable table(options);
  const int64_t empty = table.Sizes().bytes;
  const auto fill = [&] {
    std::vector<int64_t> keys;
    for (int64_t key = 0; key < 1'000'000; ++key) {
      keys.push_back(key);
      if (key % 2 == 0) keys.push_back(key);
    }
    Look(&table, keys, false, 1);
  };
  const int64_t before = Resident();
  fill();
  const int64_t full = table.Sizes().bytes;
  CHECK(full > 25'000'000);
  Look(&table, {2, 2}, false, 9);
  CHECK_EQ(ExportAll(&table, {}, {9, 5}).keys.size(), 1u);
  CHECK(table.Sizes().bytes < full / 10);
  table.Clear();
  CHECK_EQ(table.Sizes().bytes, empty);
  for (int round = 0; round < 3; ++round) {
    fill();
    table.Clear();
  }
  CHECK_EQ(table.Sizes().bytes, empty);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(Resident() - before < full / 2);
#else
  static_cast<void>(before);
#endif
}

TEST(OptimizersFormulas) {
  const float grad[1] = {2};
  float row[1] = {1}, m[1] = {0.5f}, v[1] = {0.25f};
  float* slots[2] = {m, v};
  AdamRule adam;
  adam.beta1_power = 0.9f, adam.beta2_power = 0.999f, adam.learning_rate = 0.1f;
  adam.beta1 = 0.9f, adam.beta2 = 0.999f, adam.epsilon = 1e-8f;
  adam.share1 = 1 - adam.beta1, adam.share2 = 1 - adam.beta2;
  adam.Update(1, grad, row, slots);
  CHECK(std::abs(m[0] - 0.65f) < 1e-6f && std::abs(v[0] - 0.25375f) < 1e-6f);
  CHECK(std::abs(row[0] - (1 - 0.0316227766f * 0.65f / 0.50373604f)) < 1e-5f);

  float ftrl_row[1] = {1}, accum[1] = {0.1f}, linear[1] = {0};
  float* ftrl_slots[2] = {accum, linear};
  FtrlRule ftrl;
  ftrl.learning_rate = 0.1f, ftrl.l1 = 2, ftrl.l2 = 1e-5f, ftrl.learning_rate_power = -0.5f;
  FtrlRule powered = ftrl;
  const float six[1] = {6};
  ftrl.Update(1, six, ftrl_row, ftrl_slots);
  CHECK(std::abs(ftrl_row[0] - 0.8142198f) < 1e-5f);
  CHECK(std::abs(linear[0] + 50.920998f) < 1e-3f);
  float same_row[1] = {1}, same_accum[1] = {0.1f}, same_linear[1] = {0};
  float* same_slots[2] = {same_accum, same_linear};
  powered.learning_rate_power = -0.5000001f;
  powered.Update(1, six, same_row, same_slots);
  CHECK(std::abs(same_row[0] - ftrl_row[0]) < 1e-4f);
}

}  // namespace
}  // namespace workbench
