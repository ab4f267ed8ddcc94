#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "table/embedding_table.h"
#include "test/support/check.h"

namespace workbench {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int64_t kInserts = 400'000;
#else
constexpr int64_t kInserts = 10'000'000;
#endif
constexpr int kThreads = 8;
constexpr int64_t kDim = 16;
constexpr int64_t kBatch = 4'000;

TableOptions Options() {
  TableOptions options;
  options.dim = kDim;
  return options;
}

void Look(EmbeddingTable* table, const std::vector<int64_t>& keys, float value,
          std::vector<float>* out) {
  const std::vector<float> defaults(kDim, value);
  out->resize(keys.size() * kDim);
  LookupBatch batch;
  batch.keys = keys.data();
  batch.count = static_cast<int64_t>(keys.size());
  batch.default_rows = defaults.data();
  batch.default_count = 1;
  batch.out = out->data();
  table->Lookup(batch, OnThisThread);
}

std::vector<int64_t> Keys(EmbeddingTable* table, std::vector<float>* values) {
  std::vector<int64_t> keys;
  table->Export(
      {}, {},
      [&](const TableSizes& sizes, RowTargets* to) {
        keys.resize(sizes.rows);
        values->resize(sizes.rows * kDim);
        to->keys = keys.data();
        to->values = values->data();
        return true;
      },
      OnThisThread);
  return keys;
}

template <typename Work>
void OnThreads(const Work& work) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back([&work, t] { work(t); });
  for (std::thread& thread : threads) thread.join();
}

// Every key is inserted by two threads, half the range apart, while they meet in the middle.
TEST(NoKeyIsLostAndNoneHasTwoRows) {
  EmbeddingTable table(Options());
  const int64_t distinct = kInserts / 2;
  const auto start = std::chrono::steady_clock::now();
  OnThreads([&](int t) {
    const int64_t share = distinct / (kThreads / 2);
    const int64_t from = (t % (kThreads / 2)) * share;
    const bool backwards = t >= kThreads / 2;
    std::vector<int64_t> keys(kBatch);
    std::vector<float> out;
    for (int64_t i = 0; i < share; i += kBatch) {
      keys.resize(std::min(kBatch, share - i));
      for (size_t k = 0; k < keys.size(); ++k) {
        const int64_t n = from + i + static_cast<int64_t>(k);
        keys[k] = (backwards ? 2 * from + share - 1 - n : n) * 7919 - distinct;
      }
      Look(&table, keys, static_cast<float>(t), &out);
    }
  });
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::vector<float> values;
  std::vector<int64_t> keys = Keys(&table, &values);
  CHECK_EQ(static_cast<int64_t>(keys.size()), distinct);
  std::sort(keys.begin(), keys.end());
  for (int64_t i = 0; i < distinct; ++i) CHECK_EQ(keys[i], i * 7919 - distinct);
  for (int64_t i = 0; i < distinct; ++i) {  // a row is one thread's, all of it
    for (int64_t d = 1; d < kDim; ++d) CHECK_EQ(values[i * kDim + d], values[i * kDim]);
  }
  std::cout << static_cast<int64_t>(kInserts / seconds) << " lookups/s" << std::endl;
}

TEST(TenMillionRowsAreNotMuchMoreThanTheirPayload) {
  EmbeddingTable table(Options());
  std::atomic<int64_t> next{0};
  const auto start = std::chrono::steady_clock::now();
  OnThreads([&](int) {
    std::vector<int64_t> keys(kBatch);
    std::vector<float> out;
    for (int64_t from; (from = next.fetch_add(kBatch)) < kInserts;) {
      for (int64_t k = 0; k < kBatch; ++k) keys[k] = from + k;
      Look(&table, keys, 1, &out);
    }
  });
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const TableSizes sizes = table.Sizes();
  CHECK_EQ(sizes.rows, kInserts);
  const double per_row = static_cast<double>(sizes.bytes) / static_cast<double>(sizes.rows);
  std::cout << per_row << " bytes/row, " << static_cast<int64_t>(kInserts / seconds)
            << " inserts/s" << std::endl;
  CHECK(per_row <= 1.3 * (8 + 4 * kDim));
}

// All calls at once: what is torn, deadlocks or races shows here or under a sanitizer.
TEST(EverythingAtOnce) {
  EmbeddingTable table(Options());
  OnThreads([&](int t) {
    std::vector<int64_t> keys(200);
    std::vector<float> out, grads(200 * kDim, 1.0f);
    for (int round = 0; round < 40; ++round) {
      for (size_t k = 0; k < keys.size(); ++k) keys[k] = (t * 31 + round * 17 + k * k) % 500;
      Look(&table, keys, 0, &out);
      if (t == 0) {
        std::vector<float> values;
        Keys(&table, &values);
        for (size_t i = 0; i < values.size(); ++i) CHECK_EQ(values[i], values[i - i % kDim]);
      } else if (t == 1) {
        table.Sizes();
        if (round % 10 == 9) table.Clear();
      } else {
        std::vector<int> slots;
        CHECK_EQ(table.FindSlots({{"slot " + std::to_string(round / 10), 0.1f}}, &slots), "");
        AdagradRule rule;
        rule.learning_rate = 0.5f;
        UpdateBatch batch{keys.data(), static_cast<int64_t>(keys.size()), grads.data()};
        table.Update(batch, slots, rule, OnThisThread);
      }
    }
  });
  CHECK(table.Sizes().rows <= 500);
}

}  // namespace
}  // namespace workbench
