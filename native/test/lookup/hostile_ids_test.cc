// Ids and shapes crafted to break a lookup.

#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

#include "lookup/row_ids.h"
#include "lookup/shards.h"
#include "lookup/unique/unique_ids.h"
#include "test/support/check.h"

namespace workbench {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

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

}  // namespace
}  // namespace workbench
