#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "lookup/row_ids.h"
#include "lookup/shards.h"
#include "lookup/unique/id_order.h"
#include "lookup/unique/unique_ids.h"
#include "test/support/check.h"

namespace workbench {
namespace {

// A sparse tensor that owns its parts, and what was kept of it.
struct Sparse {
  std::vector<int64_t> ids, indices, dense_shape;
  std::vector<float> weights;
  std::vector<int32_t> splits, sources;
  std::vector<int64_t> values;
  std::vector<float> kept;

  std::string Keep(const KeepRules& rules) {
    const int rank = static_cast<int>(dense_shape.size());
    const int64_t rows = RowCount(dense_shape.data(), rank);
    if (rows < 0) return "no rows";
    SparseIds<int64_t> in;
    in.ids = ids.data();
    in.indices = indices.data();
    in.weights = weights.empty() ? nullptr : weights.data();
    in.count = static_cast<int64_t>(ids.size());
    in.dense_shape = dense_shape.data();
    in.rank = rank;
    splits.assign(rows + 1, -1);
    const std::string problem = SplitRows(in, rules, rows, splits.data());
    if (!problem.empty()) return problem;
    std::vector<int32_t> cursors(rows);
    values.assign(splits.back(), -99);
    sources.assign(splits.back(), -99);
    kept.assign(splits.back(), -99);
    KeepIds(in, rules, rows, splits.data(), cursors.data(), values.data(),
            weights.empty() ? nullptr : kept.data(), sources.data());
    return "";
  }
};

using Ids = std::vector<int64_t>;
using Places = std::vector<int32_t>;

TEST(PrunesAndFillsLikeDeepRecsTest) {
  // Its rows {0, 0, 2, 3} of values {1, 5, 3, -5}; ours stand in order of rows.
  Sparse in{{1, 5, 3, -5}, {0, 0, 0, 1, 2, 0, 3, 0}, {4, 2}, {}, {}, {}, {}, {}};
  KeepRules rules;
  rules.prune_ids = rules.fill_empty_rows = true;
  rules.fill_id = 8;
  CHECK_EQ(in.Keep(rules), "");
  CHECK(in.values == Ids({1, 5, 8, 3, 8}));
  CHECK(in.splits == Places({0, 2, 3, 4, 5}));
  CHECK(in.sources == Places({0, 1, -1, 2, -1}));
}

TEST(PrunesWeights) {
  Sparse in{{1, 5, 3, 4}, {0, 0, 0, 1, 2, 0, 3, 0}, {4, 2}, {-1, 2, 3, 0.f / 0.f}, {}, {}, {}, {}};
  KeepRules rules;
  rules.prune_weights = rules.fill_empty_rows = true;
  CHECK_EQ(in.Keep(rules), "");
  CHECK(in.values == Ids({5, 0, 3, 0}));
  CHECK(in.kept == std::vector<float>({2, 1, 3, 1}));
}

TEST(KeepsTheOrderWithinARow) {
  Sparse in{{7, 8, 9, 6}, {1, 0, 0, 0, 1, 1, 0, 5}, {2, 2}, {}, {}, {}, {}, {}};
  CHECK_EQ(in.Keep({}), "");
  CHECK(in.values == Ids({8, 6, 7, 9}));
  CHECK(in.splits == Places({0, 2, 4}));
}

TEST(CountsRowsOfHigherRanks) {
  Sparse in{{7, 8}, {1, 2, 0, 0, 1, 0}, {2, 3, 1}, {}, {}, {}, {}, {}};
  CHECK_EQ(in.Keep({}), "");
  CHECK(in.splits == Places({0, 0, 1, 1, 1, 1, 2}));
  CHECK(in.values == Ids({8, 7}));
}

TEST(RefusesIndicesOutside) {
  Sparse in{{7}, {2, 0}, {2, 3}, {}, {}, {}, {}, {}};
  CHECK_EQ(in.Keep({}), "indices[0] is [2, 0], outside dense_shape [2, 3]");
  in.indices = {-1, 0};
  CHECK_HAS(in.Keep({}), "indices[0] is [-1, 0]");
}

TEST(RefusesMoreThanInt32Counts) {
  const int64_t large[] = {int64_t{1} << 20, int64_t{1} << 20, 1};
  CHECK_EQ(RowCount(large, 3), -1);
  const int64_t negative[] = {3, -1};
  CHECK_EQ(RowCount(negative, 2), -1);
  const int64_t none[] = {int64_t{1} << 40, 0, 5};
  CHECK_EQ(RowCount(none, 3), 0);
}

TEST(SaysWhichRowHoldsAPosition) {
  const int32_t splits[] = {0, 0, 2, 2, 3};
  CHECK_EQ(RowOf(splits, 4, 0), 1);
  CHECK_EQ(RowOf(splits, 4, 1), 1);
  CHECK_EQ(RowOf(splits, 4, 2), 3);
}

TEST(SplitsByRealShardSizes) {
  const Shards shards(PartitionStrategy::kDiv, {1, 0, 5, 2});
  const Ids expected_shards = {0, 2, 2, 2, 2, 2, 3, 3}, expected_rows = {0, 0, 1, 2, 3, 4, 0, 1};
  for (int64_t id = 0; id < 8; ++id) {
    int shard = -1;
    int64_t row = -1;
    CHECK(shards.Find(id, &shard, &row));
    CHECK_EQ(shard, expected_shards[id]);
    CHECK_EQ(row, expected_rows[id]);
  }
  int shard = -1;
  int64_t row = -1;
  CHECK(!shards.Find(8, &shard, &row));
  CHECK(!shards.Find(-1, &shard, &row));
}

TEST(SplitsByRemainder) {
  const Shards shards(PartitionStrategy::kMod, {3, 3, 2});
  int shard = -1;
  int64_t row = -1;
  CHECK(shards.Find(7, &shard, &row) && shard == 1 && row == 2);
  CHECK(!shards.Find(8, &shard, &row));
  CHECK(!shards.Find(-3, &shard, &row));
}

TEST(SplitsKeysWithoutChangingThem) {
  const Shards shards(PartitionStrategy::kModKey, {-1, -1, -1});
  int shard = -1;
  int64_t row = -1;
  CHECK(shards.Find(123456, &shard, &row) && shard == 456 % 3 && row == 123456);
  CHECK(shards.Find(-1, &shard, &row) && shard == 999 % 3 && row == -1);
}

TEST(ListsWhatEachShardHas) {
  const Shards shards(PartitionStrategy::kMod, {4, 4});
  const Ids ids = {5, 0, 3, 3};
  Places permutation(8);
  Ids counts(2);
  CHECK_EQ(FindShards(shards, ids.data(), 4, nullptr, permutation.data(), counts.data()), -1);
  CHECK(permutation == Places({1, 0, 0, 0, 1, 1, 1, 2}));
  Ids first(counts[0]), second(counts[1]);
  int64_t* lists[] = {first.data(), second.data()};
  ListRows(shards, ids.data(), 4, permutation.data(), lists);
  CHECK(first == Ids({0}));
  CHECK(second == Ids({2, 1, 1}));
  const Ids beyond = {1, 8};
  CHECK_EQ(FindShards(shards, beyond.data(), 2, nullptr, permutation.data(), counts.data()), 1);
}

TEST(FindsEachIdOnceInOrderOfAppearance) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    const int64_t count = random() % 500, range = 1 + random() % 300;
    std::vector<int64_t> ids(count);
    for (auto& id : ids) id = static_cast<int64_t>(random() % range) - range / 2;
    std::vector<int32_t> slots(UniqueSlots(count)), index(count), counts(count);
    std::vector<int64_t> unique(count);
    const int64_t found = UniqueIds(ids.data(), count, slots.data(), unique.data(), index.data(),
                                    counts.data());
    std::map<int64_t, int32_t> expected;
    std::vector<int64_t> order;
    for (int64_t id : ids) {
      if (expected[id]++ == 0) order.push_back(id);
    }
    CHECK_EQ(found, static_cast<int64_t>(order.size()));
    unique.resize(found);
    CHECK(unique == order);
    for (int64_t i = 0; i < count; ++i) CHECK_EQ(unique[index[i]], ids[i]);
    for (int64_t u = 0; u < found; ++u) CHECK_EQ(counts[u], expected[unique[u]]);

    std::vector<uint64_t> scratch(2 * count);
    std::vector<int32_t> ascending(count);
    CHECK(OrderIds(ids.data(), count, scratch.data(), ascending.data()));
    unique.assign(count, -99);
    CHECK_EQ(UniqueInOrder(ids.data(), count, ascending.data(), unique.data(), index.data(),
                           counts.data()),
             found);
    CHECK(std::is_sorted(unique.begin(), unique.begin() + found));
    for (int64_t i = 0; i < count; ++i) CHECK_EQ(unique[index[i]], ids[i]);
    for (int64_t u = 0; u < found; ++u) CHECK_EQ(counts[u], expected[unique[u]]);
  }
}

TEST(OrdersIdsOfAnyRangeThatFits) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 300; ++round) {
    const int64_t count = random() % 300;
    const uint64_t range = (uint64_t{1} << (random() % 33)) - (random() % 2);
    const int64_t least = static_cast<int64_t>(random()) >> (1 + random() % 40);
    std::vector<int64_t> ids(count);
    for (auto& id : ids) id = least + static_cast<int64_t>(random() % std::max<uint64_t>(range, 1));
    std::vector<uint64_t> scratch(2 * count);
    std::vector<int32_t> order(count, -1), expected(count);
    for (int64_t i = 0; i < count; ++i) expected[i] = static_cast<int32_t>(i);
    std::stable_sort(expected.begin(), expected.end(),
                     [&](int32_t a, int32_t b) { return ids[a] < ids[b]; });
    CHECK(OrderIds(ids.data(), count, scratch.data(), order.data()));
    CHECK(order == expected);
  }
  const Ids wide = {0, int64_t{1} << 32}, widest = {INT64_MIN, INT64_MAX};
  std::vector<uint64_t> scratch(4);
  Places order(2);
  CHECK(!OrderIds(wide.data(), 2, scratch.data(), order.data()));
  CHECK(!OrderIds(widest.data(), 2, scratch.data(), order.data()));
}

TEST(SurvivesAnything) {
  std::mt19937_64 random(2);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    Sparse in;
    const int rank = 2 + random() % 3;
    for (int d = 0; d < rank; ++d) {
      in.dense_shape.push_back(static_cast<int64_t>(random() % 7) - (random() % 50 == 0));
    }
    const int count = random() % 12;
    for (int i = 0; i < count; ++i) {
      in.ids.push_back(random() % 9 ? static_cast<int64_t>(random() % 10) - 2 : random());
      for (int d = 0; d < rank; ++d) {
        const int64_t size = std::max<int64_t>(1, in.dense_shape[d]);
        in.indices.push_back(random() % 60 ? random() % size : random());
      }
    }
    if (random() % 2) {
      for (int i = 0; i < count; ++i) in.weights.push_back(static_cast<int>(random() % 5) - 1);
    }
    KeepRules rules;
    rules.prune_ids = random() % 2;
    rules.prune_weights = random() % 2 && !in.weights.empty();
    rules.fill_empty_rows = random() % 2;
    rules.fill_id = random() % 10;
    if (!in.Keep(rules).empty()) {
      ++refused;
      continue;
    }
    for (int64_t value : in.values) CHECK(value != -99);
    if (rules.fill_empty_rows) CHECK(in.values.size() + 1 >= in.splits.size());
    std::vector<int64_t> rows(1 + random() % 4);
    for (auto& each : rows) each = random() % 6;
    const auto strategy = random() % 2 ? PartitionStrategy::kDiv : PartitionStrategy::kMod;
    const Shards shards(strategy, rows);
    std::vector<int32_t> permutation(2 * in.values.size());
    std::vector<int64_t> counts(rows.size());
    const int64_t count_kept = in.values.size();
    std::vector<uint64_t> scratch(2 * count_kept);
    std::vector<int32_t> order(count_kept);
    const bool ordered = OrderIds(in.values.data(), count_kept, scratch.data(), order.data());
    if (FindShards(shards, in.values.data(), count_kept, ordered ? order.data() : nullptr,
                   permutation.data(), counts.data()) >= 0) {
      continue;
    }
    std::vector<std::vector<int64_t>> lists;
    std::vector<int64_t*> heads;
    for (int64_t each : counts) lists.emplace_back(each, -1);
    for (auto& each : lists) heads.push_back(each.data());
    ListRows(shards, in.values.data(), count_kept, permutation.data(), heads.data());
    for (size_t p = 0; p < lists.size(); ++p) {
      for (int64_t row : lists[p]) CHECK(row >= 0 && row < rows[p]);
      CHECK(!ordered || std::is_sorted(lists[p].begin(), lists[p].end()));
    }
  }
  CHECK(refused > 100 && refused < 19000);
}

}  // namespace
}  // namespace workbench
