#include <algorithm>
#include <ctime>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "lookup/grouped/feature_rows.h"
#include "lookup/grouped/table_rows.h"
#include "lookup/row_ids.h"
#include "test/support/check.h"

namespace workbench {
namespace {

using Numbers = std::vector<int64_t>;

constexpr int64_t kBlockIds = 256;

// Ids of examples, as a SparseTensor and as row splits.
struct Batch {
  Numbers ids, indices, splits{0};
  std::vector<float> weights;
  int64_t examples = 0;

  void Add(int64_t length, std::mt19937* random, int64_t table_rows) {
    for (int64_t i = 0; i < length; ++i) {
      ids.push_back(static_cast<int64_t>((*random)() % (table_rows + 1)) - 1);
      indices.insert(indices.end(), {examples, i});
      weights.push_back(static_cast<float>((*random)() % 5) - 1.0f);
    }
    splits.push_back(static_cast<int64_t>(ids.size()));
    ++examples;
  }

  FeatureIds<int64_t> Read(bool split) const {
    FeatureIds<int64_t> in;
    in.block_ids = kBlockIds;
    in.ids = ids.data();
    in.count = static_cast<int64_t>(ids.size());
    in.examples = examples;
    (split ? in.splits : in.indices) = split ? splits.data() : indices.data();
    return in;
  }
};

// What all blocks say together; empty where one is not read.
struct Whole {
  Numbers rows, splits{0};
  std::vector<float> weights;
  std::vector<int32_t> places;
  BlockState state = BlockState::kRead;
  bool one_each = false;  // of any block

  explicit Whole(const FeatureIds<int64_t>& in) {
    BlockRows block;
    int64_t next = 0;
    for (int64_t b = 0; b < CountBlocks(in); ++b) {
      state = ReadBlock(in, b, &block);
      if (state != BlockState::kRead) return;
      CHECK_EQ(block.begin, next);
      next = block.end;
      for (int64_t e = 0; block.one_each && e <= block.end - block.begin; ++e) {
        CHECK_EQ(block.splits[e], e);
      }
      one_each |= block.one_each;
      for (int64_t e = 0; e < block.end - block.begin; ++e) {
        rows.insert(rows.end(), block.rows.begin() + block.splits[e],
                    block.rows.begin() + block.splits[e + 1]);
        for (int32_t i = block.splits[e]; in.weights != nullptr && i < block.splits[e + 1]; ++i) {
          weights.push_back(block.weights[i]);
          places.push_back(block.places[i]);
        }
        splits.push_back(static_cast<int64_t>(rows.size()));
      }
    }
    CHECK_EQ(next, in.examples);
  }
};

// Ids of an example before others, one of so many, and one behind it.
Batch WithALongExample(int64_t length, std::mt19937* random) {
  Batch batch;
  for (int64_t each : {int64_t{3}, length, int64_t{2}}) batch.Add(each, random, 50);
  return batch;
}

TEST(AnExampleOfAnyLengthEndsWhereItEndsTest) {
  std::mt19937 random(3);
  for (int64_t length = 0; length < 5 * kBlockIds; length += 1 + length / 9) {
    const Batch batch = WithALongExample(length, &random);
    FeatureIds<int64_t> in = batch.Read(false);
    in.table_rows = 50;
    in.prune = true;
    const Whole found(in), expected([&] {
      FeatureIds<int64_t> split = batch.Read(true);
      split.table_rows = 50;
      split.prune = true;
      return split;
    }());
    CHECK(found.state == BlockState::kRead);
    CHECK(found.rows == expected.rows);
    CHECK(found.splits == expected.splits);
  }
}

// Seconds of this processor, the least of some times.
double SecondsToRead(int64_t length) {
  std::mt19937 random(3);
  const Batch batch = WithALongExample(length, &random);
  FeatureIds<int64_t> in = batch.Read(false);
  in.table_rows = 50;
  in.prune = true;
  double least = 1e9;
  for (int time = 0; time < 3; ++time) {
    BlockRows block;
    const std::clock_t start = std::clock();
    for (int64_t b = 0; b < CountBlocks(in); ++b) {
      CHECK(ReadBlock(in, b, &block) == BlockState::kRead);
    }
    least = std::min(least, double(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return least;
}

TEST(ALongExampleTakesTimeByItsLengthTest) {
  // With its square it would be 64 times.
  CHECK(SecondsToRead(1 << 20) < 30 * SecondsToRead(1 << 17));
}

TEST(BlocksTogetherKeepWhatTheOpsBeforeKeepTest) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Batch batch;
    const int64_t examples = random() % 4 == 0 ? random() % 9000 : random() % 12;
    const int longest = 1 + random() % 12;
    for (int64_t e = 0; e < examples; ++e) {
      batch.Add(random() % 500 == 0 ? 3 * kBlockIds : random() % longest, &random, 50);
    }
    FeatureIds<int64_t> in = batch.Read(round % 2);
    in.table_rows = 50;
    in.prune = true;
    in.fills = round % 3 == 0;
    in.fill_id = 7;
    in.weights = round % 5 < 2 ? batch.weights.data() : nullptr;
    in.prune_weights = round % 5 == 0;
    const Whole found(in);
    CHECK(found.state == BlockState::kRead);

    const int64_t shape[] = {examples, 1 << 20};
    const SparseIds<int64_t> sparse{batch.ids.data(), batch.indices.data(), in.weights,
                                    in.count,         shape,                2};
    KeepRules rules;
    rules.prune_ids = true;
    rules.prune_weights = in.prune_weights;
    rules.fill_empty_rows = in.fills;
    rules.fill_id = 7;
    std::vector<int32_t> splits(examples + 1), cursors(examples);
    CHECK_EQ(SplitRows(sparse, rules, examples, splits.data()), "");
    Numbers kept(splits.back());
    const int64_t weighted = in.weights == nullptr ? 0 : splits.back();
    std::vector<float> weights(weighted);
    std::vector<int32_t> places(weighted);
    KeepIds<int64_t>(sparse, rules, examples, splits.data(), cursors.data(), kept.data(),
                     weighted ? weights.data() : nullptr, weighted ? places.data() : nullptr);
    CHECK(found.rows == kept);
    CHECK(found.weights == weights);
    CHECK(found.places == places);
    CHECK(found.splits == Numbers(splits.begin(), splits.end()));
  }
}

TEST(DenseIdsAreOneForEachExampleTest) {
  std::mt19937 random(9);
  for (int round = 0; round < 100; ++round) {
    Batch batch;
    const int64_t examples = random() % 4 == 0 ? random() % (3 * kBlockIds) : random() % 9;
    for (int64_t e = 0; e < examples; ++e) batch.Add(1, &random, 50);
    FeatureIds<int64_t> dense;
    dense.block_ids = kBlockIds;
    dense.ids = batch.ids.data();
    dense.count = dense.examples = examples;
    dense.dense = true;
    for (FeatureIds<int64_t> in : {dense, batch.Read(false)}) {
      in.table_rows = 50;
      in.prune = round % 2;
      in.fills = round % 3 == 0;
      in.fill_id = 7;
      const Whole found(in);
      bool below = false;
      Numbers rows, splits{0};
      for (int64_t id : batch.ids) {
        below |= id < 0;
        if (id >= 0 || in.fills) rows.push_back(id < 0 ? 7 : id);
        splits.push_back(static_cast<int64_t>(rows.size()));
      }
      CHECK((found.state == BlockState::kNoSuchRow) == (below && !in.prune));
      if (found.state != BlockState::kRead) continue;
      CHECK(found.rows == rows);
      CHECK(found.splits == splits);
      if (!below) CHECK(found.one_each);
    }
  }
}

TEST(IdsThatDoNotComeInOrderAreNoticedTest) {
  std::mt19937 random(8);
  for (int round = 0; round < 300; ++round) {
    Batch batch;
    const int64_t examples = 2 + random() % 6000;
    for (int64_t e = 0; e < examples; ++e) batch.Add(1 + random() % 3, &random, 50);
    FeatureIds<int64_t> in = batch.Read(false);
    in.table_rows = 50;
    in.prune = true;
    const int64_t at = random() % in.count;
    const int64_t before = batch.indices[2 * at];
    const int64_t wrong[] = {-1, examples, INT64_MIN, INT64_MAX, before + 1, before - 1};
    batch.indices[2 * at] = wrong[random() % 6];
    bool ordered = true;
    for (int64_t i = 0; i < in.count; ++i) {
      const int64_t example = batch.indices[2 * i];
      ordered &= example >= 0 && example < examples;
      ordered &= i == 0 || batch.indices[2 * (i - 1)] <= example;
    }
    CHECK((Whole(in).state == BlockState::kRead) == ordered);
  }
}

TEST(SplitsThatFallAreNoticedTest) {
  const Numbers ids(10, 1);
  for (const Numbers& splits : {Numbers{0, 7, 4, 10}, {0, 11, 11, 10}, {0, -1, 3, 10},
                                {0, INT64_MAX, INT64_MIN, 10}}) {
    FeatureIds<int64_t> in;
    in.block_ids = kBlockIds;
    in.ids = ids.data();
    in.count = 10;
    in.examples = 3;
    in.splits = splits.data();
    in.table_rows = 5;
    CHECK(Whole(in).state == BlockState::kUnordered);
  }
}

TEST(AnIdOutsideTheTableIsNamedTest) {
  const Numbers ids{0, 4, 5, -1}, splits{0, 1, 1, 4};
  FeatureIds<int64_t> in;
  in.ids = ids.data();
  in.count = 4;
  in.examples = 3;
  in.splits = splits.data();
  in.table_rows = 5;
  BlockRows block;
  int64_t id = 0;
  CHECK(ReadBlock(in, 0, &block) == BlockState::kNoSuchRow);
  CHECK_EQ(FirstOutside(in, block, &id), 2);
  CHECK_EQ(id, 5);
  in.prune = true;
  in.table_rows = 6;
  CHECK(ReadBlock(in, 0, &block) == BlockState::kRead);
  // A fill counts only where it is needed.
  in.fills = true;
  in.fill_id = 6;
  CHECK(ReadBlock(in, 0, &block) == BlockState::kNoSuchRow);
  CHECK_EQ(FirstOutside(in, block, &id), 1);
  CHECK_EQ(id, 6);
}

TEST(RowsOfATableComeOnceInOrderTest) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 100; ++round) {
    // Keys that spread over all 64 bits have no quick order.
    const int shift = round % 3 == 0 ? 0 : 56;
    const int64_t ids = static_cast<int64_t>(random() % 3000);
    TableRows rows(ids);
    std::vector<std::pair<int64_t, int32_t>> expected;
    for (int32_t i = 0; i < ids; ++i) {
      rows.rows[i] = static_cast<int64_t>(random()) >> shift;
      rows.examples[i] = i / 3;
      expected.emplace_back(rows.rows[i], rows.examples[i]);
    }
    rows.ids = ids;
    OrderRows(&rows);
    std::stable_sort(expected.begin(), expected.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    int64_t at = 0;
    for (int64_t u = 0; u < rows.unique; ++u) {
      CHECK_EQ(rows.firsts[u], at);
      if (u > 0) CHECK(rows.rows[u - 1] < rows.rows[u]);
      for (; at < rows.firsts[u + 1]; ++at) {
        CHECK_EQ(rows.rows[u], expected[at].first);
        CHECK_EQ(rows.examples[at], expected[at].second);
      }
    }
    CHECK_EQ(at, ids);
  }
}

}  // namespace
}  // namespace workbench
