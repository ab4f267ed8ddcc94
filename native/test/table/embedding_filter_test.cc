// Keys that wait for a row: exact counts within a bound, and a Bloom filter's.

#include "table/embedding_table_waiting.h"

#include <map>
#include <random>
#include <vector>

#include "test/support/check.h"

namespace workbench {
namespace {

int64_t Add(WaitingKeys* keys, int64_t key, int64_t count = 1, int64_t step = 0) {
  return keys->Add(HashKey(key, 0), key, count, step);
}

TEST(WaitingKeysDoWhatAMapDoes) {
  std::mt19937_64 random(1);
  for (const bool versions : {false, true}) {
    WaitingKeys keys(0, 1 << 20, versions);
    std::map<int64_t, std::pair<int64_t, int64_t>> map;  // count, version
    for (int64_t step = 0; step < 200'000; ++step) {
      const int64_t key = static_cast<int64_t>(random() % 3000) - 1500;
      if (random() % 4 == 0) {
        keys.Remove(HashKey(key, 0), key);
        map.erase(key);
      } else {
        auto& entry = map[key];
        entry = {entry.first + 2, step};
        CHECK_EQ(Add(&keys, key, 2, step), entry.first);
      }
      if (versions && step % 50'000 == 49'999) {
        keys.Evict(step, 3000);
        for (auto at = map.begin(); at != map.end();) {
          at = step - at->second.second > 3000 ? map.erase(at) : std::next(at);
        }
      }
    }
    CHECK_EQ(keys.size(), static_cast<int64_t>(map.size()));
    for (int64_t row = 0; row < keys.size(); ++row) {
      const auto& entry = map.at(keys.keys()[row]);
      CHECK_EQ(keys.counts()[row], entry.first);
      if (versions) CHECK_EQ(keys.versions()[row], entry.second);
    }
  }
}

TEST(TenMillionKeysThatCameOnceTakeBoundedMemory) {
  constexpr int64_t kMost = 100'000;
  WaitingKeys keys(0, kMost, true);
  for (int64_t often = 0; often < 1000; ++often) Add(&keys, -1 - often, 5);
  for (int64_t key = 0; key < 10'000'000; ++key) {
    Add(&keys, key, 1, key);
    CHECK(keys.size() <= kMost);
  }
  CHECK(keys.bytes() < 60 * kMost);
  // What came more often stays, and of the others the latest.
  for (int64_t often = 0; often < 1000; ++often) CHECK_EQ(Add(&keys, -1 - often), 6);
  for (int64_t key = 10'000'000 - kMost / 4; key < 10'000'000; ++key) CHECK_EQ(Add(&keys, key), 2);
  keys.Evict(20'000'000, 5);
  CHECK_EQ(keys.size(), 0);
  CHECK(keys.bytes() < 1000);
}

TEST(ABloomFilterNeverCountsTooLittle) {
  for (const int bytes : {1, 2, 4, 8}) {
    std::mt19937_64 random(bytes);
    BloomCounts bloom(2000, 4, bytes);  // Far too small, so that many keys share all counters.
    const int64_t memory = bloom.bytes();
    std::map<int64_t, int64_t> map;
    const int64_t most = bytes == 1 ? 255 : 65535;
    for (int step = 0; step < 100'000; ++step) {
      const int64_t key = static_cast<int64_t>(random() % 5000), count = random() % 3;
      map[key] += count;
      const int64_t found = bloom.Add(key, count);
      CHECK(found >= std::min(map[key], most));
    }
    CHECK_EQ(bloom.bytes(), memory);
    CHECK_EQ(memory, (2000 * bytes + 7) / 8 * 8);
    std::vector<int64_t> words(bloom.words());
    bloom.Export(words.data());
    BloomCounts other(2000, 4, bytes);
    other.Import(words.data());
    for (int64_t key = 0; key < 6000; ++key) CHECK_EQ(other.Add(key, 0), bloom.Add(key, 0));
    bloom.Clear();
    CHECK_EQ(bloom.Add(1, 1), 1);
  }
}

TEST(ABloomFilterIsAsRareWrongAsItWasAsked) {
  constexpr int64_t kElements = 100'000;  // 1%: 9.585 counters an element, 7 of a key
  BloomCounts bloom(958'506, 7, 1);
  for (int64_t key = 0; key < kElements; ++key) bloom.Add(key * 7919, 1);
  int64_t wrong = 0;
  for (int64_t key = 0; key < kElements; ++key) wrong += bloom.Add(-1 - key * 31, 0) > 0;
  CHECK(wrong > 0 && wrong < kElements * 12 / 1000);
}

TEST(CountersHoldTheirMost) {
  BloomCounts one(8, 1, 1), eight(8, 1, 8);
  for (int i = 0; i < 3; ++i) {
    CHECK_EQ(one.Add(5, kMostFreq), 255);
    CHECK(eight.Add(5, kMostFreq) >= kMostFreq);
  }
  const std::vector<int64_t> any(8, -1);
  eight.Import(any.data());
  CHECK(eight.Add(5, 1) >= kMostFreq);
}

}  // namespace
}  // namespace workbench
