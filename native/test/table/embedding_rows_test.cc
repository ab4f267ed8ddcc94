#include "table/embedding_rows.h"

#include <thread>
#include <vector>

#include "test/support/check.h"

namespace workbench {
namespace {

constexpr int64_t kDim = 20;
constexpr int64_t kDefaults = 3;

TableOptions Options(bool versions = false) {
  TableOptions options;
  options.dim = kDim;
  options.keep_versions = versions;
  return options;
}

std::vector<float> Defaults() {
  std::vector<float> rows;
  for (int64_t i = 0; i < kDefaults * kDim; ++i) rows.push_back(static_cast<float>(i));
  return rows;
}

KeyBatch BatchOf(const std::vector<int64_t>& keys, const std::vector<float>& defaults,
                 int64_t step = kNoVersion) {
  KeyBatch batch;
  batch.keys = keys.data();
  batch.count = static_cast<int64_t>(keys.size());
  batch.step = step;
  batch.default_rows = defaults.data();
  batch.default_count = kDefaults;
  return batch;
}

// What Lookup, key by key, reads without making rows.
std::vector<float> Expected(EmbeddingTable* table, const std::vector<int64_t>& keys,
                            const std::vector<float>& defaults) {
  std::vector<float> out(keys.size() * kDim);
  LookupBatch batch;
  batch.keys = keys.data();
  batch.count = static_cast<int64_t>(keys.size());
  batch.default_rows = defaults.data();
  batch.default_count = kDefaults;
  batch.read_only = true;
  batch.out = out.data();
  table->Lookup(batch, OnThisThread);
  return out;
}

struct Found {
  int64_t missing = 0;
  std::vector<int64_t> numbers;
  std::vector<float> values;
};

Found Find(const EmbeddingRows& rows, const KeyBatch& batch) {
  Found found;
  found.numbers.resize(batch.count);
  std::vector<const float*> vectors(batch.count);
  rows.Reading([&] {
    found.missing = rows.Find(batch, found.numbers.data(), vectors.data());
    for (const float* each : vectors) {
      found.values.insert(found.values.end(), each, each + kDim);
    }
  });
  return found;
}

std::vector<int64_t> SomeKeys(int64_t count) {
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < count; ++i) keys.push_back((i * 7919) % 1000 - (i % 3 == 0 ? 500 : 0));
  return keys;
}

TEST(FoundRowsAreThoseOfALookup) {
  for (const int64_t count : {0, 1, 11, 12, 23, 24, 25, 31, 32, 33, 500}) {
    EmbeddingTable table(Options());
    const std::vector<float> defaults = Defaults();
    const std::vector<int64_t> keys = SomeKeys(count);
    const KeyBatch batch = BatchOf(keys, defaults);
    const Found before = Find(EmbeddingRows(&table), batch);
    CHECK_EQ(before.missing, count);
    CHECK(before.values == Expected(&table, keys, defaults));
    for (int64_t number : before.numbers) CHECK_EQ(number, EmbeddingRows::kNone);
    EmbeddingRows(&table).Add(batch);
    EmbeddingRows(&table).Add(batch);  // They are there.
    const Found after = Find(EmbeddingRows(&table), batch);
    CHECK_EQ(after.missing, 0);
    CHECK(after.values == Expected(&table, keys, defaults));
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        CHECK_EQ(keys[i] == keys[j], after.numbers[i] == after.numbers[j]);
      }
    }
  }
}

TEST(RowsChangeWhereTheyWereFound) {
  EmbeddingTable table(Options());
  std::vector<int> slots;
  CHECK_EQ(table.FindSlots({{"a", 0.5f}, {"b", 0.25f}}, &slots), "");
  const std::vector<float> defaults = Defaults();
  const std::vector<int64_t> keys = {5, -7, 1 << 20};
  {
    const EmbeddingRows rows(&table);
    const KeyBatch batch = BatchOf(keys, defaults);
    rows.Add(batch);
    const Found found = Find(rows, batch);
    RowPlace places[3];
    rows.Changing([&] {
      rows.Places(found.numbers.data(), 3, {slots[1], slots[0]}, places);
      for (int i = 0; i < 3; ++i) {
        CHECK_EQ(places[i].slots[0][kDim - 1], 0.25f);
        CHECK_EQ(places[i].slots[1][0], 0.5f);
        for (int64_t d = 0; d < kDim; ++d) places[i].values[d] = static_cast<float>(100 * i + d);
      }
    });
  }
  const std::vector<float> changed = Expected(&table, keys, defaults);
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t d = 0; d < kDim; ++d) CHECK_EQ(changed[i * kDim + d], static_cast<float>(100 * i + d));
  }
}

// Numbers come out of a graph, and may be any.
TEST(NumbersOfNoRowHaveNoPlace) {
  EmbeddingTable table(Options());
  const std::vector<float> defaults = Defaults();
  const std::vector<int64_t> keys = {3};
  const EmbeddingRows rows(&table);
  rows.Add(BatchOf(keys, defaults));
  const Found found = Find(rows, BatchOf(keys, defaults));
  std::vector<int64_t> numbers = {-1, INT64_MIN, INT64_MAX, found.numbers[0] + kTableShards,
                                  found.numbers[0] ^ 1, found.numbers[0]};
  std::vector<RowPlace> places(numbers.size());
  rows.Changing([&] { rows.Places(numbers.data(), 6, {}, places.data()); });
  for (size_t i = 0; i + 1 < numbers.size(); ++i) CHECK(places[i].values == nullptr);
  CHECK(places.back().values != nullptr);
}

TEST(NumbersOutliveGrowthAndAGenerationEndsWithTheirRows) {
  EmbeddingTable table(Options(true)), other(Options());
  const std::vector<float> defaults = Defaults();
  const std::vector<int64_t> keys = {1, 2, 3}, more = SomeKeys(5000);
  int64_t generation = 0;
  std::vector<int64_t> numbers;
  {
    const EmbeddingRows rows(&table);
    generation = rows.generation();
    CHECK(generation != EmbeddingRows(&other).generation());
    rows.Add(BatchOf(keys, defaults));
    numbers = Find(rows, BatchOf(keys, defaults, 4)).numbers;
    rows.Add(BatchOf(more, defaults));
    CHECK(Find(rows, BatchOf(keys, defaults)).numbers == numbers);
  }
  const auto nothing = [](const TableSizes&, RowTargets*) { return false; };
  table.Export({}, {}, nothing, OnThisThread);  // Copies only.
  CHECK_EQ(EmbeddingRows(&table).generation(), generation);
  table.Export({9, 3}, {}, nothing, OnThisThread);
  CHECK(EmbeddingRows(&table).generation() != generation);
  generation = EmbeddingRows(&table).generation();
  table.Clear();
  CHECK(EmbeddingRows(&table).generation() != generation);
  generation = EmbeddingRows(&table).generation();
  CHECK_EQ(table.Import({}, 0, 0, 0, {}, {}, OnThisThread), "");
  CHECK(EmbeddingRows(&table).generation() != generation);
}

TEST(AStepIsRememberedUnlessOnlyRead) {
  EmbeddingTable table(Options(true));
  const std::vector<float> defaults = Defaults();
  const std::vector<int64_t> keys = {1};
  const auto version = [&] {
    int64_t key = 0, found = 0;
    std::vector<float> values(kDim);
    table.Export({}, {}, [&](const TableSizes& sizes, RowTargets* to) {
      CHECK_EQ(sizes.rows, 1);
      to->keys = &key;
      to->values = values.data();
      to->versions = &found;
      return true;
    }, OnThisThread);
    return found;
  };
  KeyBatch batch = BatchOf(keys, defaults, 7);
  {
    const EmbeddingRows rows(&table);
    rows.Add(batch);
    Find(rows, batch);
  }
  CHECK_EQ(version(), 7);
  batch.step = 8;
  batch.read_only = true;
  Find(EmbeddingRows(&table), batch);
  CHECK_EQ(version(), 7);
}

constexpr int64_t kKeys = 200;  // of a step

void CheckAlike(const float* row) {
  for (int64_t d = 1; d < kDim; ++d) CHECK_EQ(row[d], row[0]);
}

// A lookup in place, then an update of the rows that it found.
void StepInPlace(EmbeddingTable* table, const std::vector<int>& slots, const UpdateRule& rule,
                 const KeyBatch& batch) {
  const std::vector<float> grad(kDim, 1.0f);
  std::vector<int64_t> numbers(kKeys);
  int64_t generation = 0;
  {
    const EmbeddingRows rows(table);
    generation = rows.generation();
    rows.Add(batch);
    std::vector<const float*> vectors(kKeys);
    rows.Reading([&] {
      CHECK_EQ(rows.Find(batch, numbers.data(), vectors.data()), 0);
      for (const float* each : vectors) CheckAlike(each);
    });
  }
  const EmbeddingRows rows(table);
  if (rows.generation() != generation) {
    rows.Reading([&] { rows.Find(batch, numbers.data(), nullptr); });
  }
  std::vector<RowPlace> places(kKeys);
  rows.Changing([&] {
    rows.Places(numbers.data(), kKeys, slots, places.data());
    for (const RowPlace& each : places) {
      if (each.values != nullptr) rule.Update(kDim, grad.data(), each.values, each.slots);
    }
  });
}

// The same key by key.
void StepByKey(EmbeddingTable* table, const std::vector<int>& slots, const UpdateRule& rule,
               const KeyBatch& batch) {
  std::vector<float> out(kKeys * kDim);
  LookupBatch look;
  look.keys = batch.keys;
  look.count = kKeys;
  look.default_rows = batch.default_rows;
  look.default_count = batch.default_count;
  look.step = batch.step;
  look.out = out.data();
  table->Lookup(look, OnThisThread);
  for (int64_t i = 0; i < kKeys; ++i) CheckAlike(out.data() + i * kDim);
  const std::vector<float> grads(kKeys * kDim, 1.0f);
  table->Update({batch.keys, kKeys, grads.data()}, slots, rule, OnThisThread);
}

// Steps in place and by key, evictions and clearing at once: what is torn, deadlocks or races shows
// here or under a sanitizer.
TEST(EverythingAtOnceInPlace) {
  EmbeddingTable table(Options(true));
  std::vector<int> slots;
  CHECK_EQ(table.FindSlots({{"slot", 0.1f}}, &slots), "");
  const std::vector<float> defaults(kDefaults * kDim, 1.0f);
  AdagradRule rule;
  rule.learning_rate = 0.5f;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      std::vector<int64_t> keys(kKeys);
      for (int round = 0; round < 60; ++round) {
        for (int64_t k = 0; k < kKeys; ++k) keys[k] = (t * 31 + round * 17 + k * k) % 500;
        const KeyBatch batch = BatchOf(keys, defaults, round);
        if (t < 2) {
          StepInPlace(&table, slots, rule, batch);
        } else if (t < 4) {
          StepByKey(&table, slots, rule, batch);
        } else if (t == 4) {
          table.Export({round, 5}, {}, [](const TableSizes&, RowTargets*) { return false; },
                       OnThisThread);
        } else {
          table.Sizes();
          if (round % 10 == 9) table.Clear();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(table.Sizes().rows <= 500);
}

}  // namespace
}  // namespace workbench
