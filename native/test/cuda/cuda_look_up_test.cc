#include "cuda/rows/look_up/look_up_inl.h"

#include <random>
#include <vector>

#include "combine/combine.h"
#include "cuda/device/scalars.h"
#include "test/cuda/host_device.h"
#include "test/cuda/random_batch.h"
#include "test/support/check.h"

namespace workbench::cuda {
namespace {

// What the CPU's algorithm makes of a feature, [examples, dim].
template <typename Id>
std::vector<float> Expected(const RandomFeature<Id>& feature, const TableCall& table) {
  const KeptIds kept = feature.Kept();
  const float* base = static_cast<const float*>(table.values);
  LookedUp<float> in;
  in.shards = &base;
  in.dim = table.dim;
  in.rows = feature.call.examples;
  in.splits = kept.splits.data();
  in.table_row = kept.rows.data();
  in.combiner = feature.call.combiner;
  in.weights = feature.call.weights == nullptr ? nullptr : kept.weights.data();
  if (feature.call.shortens != 0) in.max_norm = feature.call.max_norm;
  std::vector<float> out(in.rows * in.dim);
  Combine(in, 0, in.rows, out.data());
  return out;
}

template <typename Id>
void CheckLookUps(int seeds, bool weighted) {
  for (int seed = 0; seed < seeds; ++seed) {
    std::mt19937_64 random(seed);
    RandomBatch<Id> batch(random, /*fills=*/true, weighted);
    // Between the vectors nothing may be written.
    std::vector<std::vector<float>> before;
    for (const FeatureCall& each : batch.calls) {
      const float* from = static_cast<const float*>(each.vectors);
      before.emplace_back(from, from + each.examples * each.stride);
    }
    HostDevice device;
    device.warps = seed % 3;
    LookUp<float, Id>(batch.call, &device);
    CHECK_EQ(batch.complaint, 0u);
    for (size_t f = 0; f < batch.calls.size(); ++f) {
      const FeatureCall& feature = batch.calls[f];
      const TableCall& table = batch.tables[feature.table];
      const std::vector<float> expected = Expected(batch.features[f], table);
      const float* found = static_cast<const float*>(feature.vectors);
      for (int64_t e = 0; e < feature.examples; ++e) {
        for (int64_t c = 0; c < feature.stride; ++c) {
          const int64_t at = e * feature.stride + c;
          const float wanted = c < table.dim ? expected[e * table.dim + c] : before[f][at];
          // To the bit: they are added in one order, but for the squares of a length.
          CHECK(feature.shortens != 0 ? Near(found[at], wanted) : found[at] == wanted);
        }
      }
    }
  }
}

TEST(LookUpsAreThoseOfTheCpu) {
  CheckLookUps<int64_t>(60, false);
  CheckLookUps<int32_t>(60, false);
}

TEST(WeightedAndShortenedLookUpsAreThoseOfTheCpu) {
  CheckLookUps<int64_t>(60, true);
  CheckLookUps<int32_t>(60, true);
}

// A batch of one feature whose ids and rows are given.
RandomBatch<int64_t> OneFeature(RowsKind kind, std::vector<int64_t> ids, std::vector<int64_t> rows,
                                int64_t examples) {
  std::mt19937_64 random(1);
  RandomBatch<int64_t> batch;
  batch.AddTable(random);
  batch.tables[0].rows = 5;
  batch.tables[0].dim = 4;
  batch.tables[0].values = batch.Floats(random, 20, true);
  RandomFeature<int64_t>& feature = batch.features.emplace_back();
  feature.ids = std::move(ids);
  (kind == RowsKind::kIndices ? feature.indices : feature.splits64) = std::move(rows);
  feature.call.kind = kind;
  feature.call.ids = feature.ids.data();
  feature.call.rows =
      kind == RowsKind::kIndices ? feature.indices.data() : feature.splits64.data();
  feature.call.count = feature.ids.size();
  feature.call.examples = feature.call.sizes[0] = examples;
  feature.call.stride = 4;
  feature.call.vectors = batch.Floats(random, examples * 4, true);
  return batch;
}

Complaint ComplaintOf(RandomBatch<int64_t>* batch) {
  batch->Finish();
  HostDevice device;
  LookUp<float, int64_t>(batch->call, &device);
  return ReadComplaint(batch->complaint);
}

TEST(IdsThatTheTableLacksAreLeftOutAndNoted) {
  for (int64_t id : {int64_t{5}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
    RandomBatch<int64_t> batch = OneFeature(RowsKind::kSplits64, {1, 2, id}, {0, 1, 3}, 2);
    const Complaint found = ComplaintOf(&batch);
    CHECK(found.what == IdFault::kNoSuchRow);
    CHECK_EQ(found.feature, 0);
    CHECK_EQ(found.example, 1);
    const float* table = static_cast<const float*>(batch.tables[0].values);
    const float* vectors = static_cast<const float*>(batch.calls[0].vectors);
    for (int c = 0; c < 4; ++c) CHECK_EQ(vectors[4 + c], table[2 * 4 + c]);
  }
}

// Of a dense feature all examples have one id; of these some ask for no row.
TEST(RowsOfOneIdEachAreCopiedWhereTheyAre) {
  for (int64_t fill : {-1, 4}) {
    RandomBatch<int64_t> batch = OneFeature(RowsKind::kDense, {1, -1, 5, 0, 2, -7, 3, 3, 1}, {}, 9);
    FeatureCall& feature = batch.features[0].call;
    feature.combiner = Combiner::kMean;
    feature.prune = 1;
    feature.fills = fill >= 0 ? 1 : 0;
    feature.fill_id = fill;
    const Complaint found = ComplaintOf(&batch);
    CHECK(found.what == IdFault::kNoSuchRow);
    CHECK_EQ(found.example, 2);
    const float* table = static_cast<const float*>(batch.tables[0].values);
    const float* vectors = static_cast<const float*>(batch.calls[0].vectors);
    for (int e = 0; e < 9; ++e) {
      const int64_t id = batch.features[0].ids[e];
      const int64_t row = id >= 0 && id < 5 ? id : fill;
      for (int c = 0; c < 4; ++c) {
        CHECK_EQ(vectors[4 * e + c], row < 0 ? 0.0f : table[4 * row + c]);
      }
    }
  }
}

TEST(TablesOfMoreRowsThanALaneKeepsAreLookedUp) {
  RandomBatch<int64_t> batch = OneFeature(RowsKind::kSplits64, {4, 1, 2}, {0, 1, 3}, 2);
  batch.tables[0].rows = kMostStreamRows + 7;
  CHECK(ComplaintOf(&batch).what == IdFault::kNone);
  const float* table = static_cast<const float*>(batch.tables[0].values);
  const float* vectors = static_cast<const float*>(batch.calls[0].vectors);
  for (int c = 0; c < 4; ++c) {
    CHECK_EQ(vectors[c], table[4 * 4 + c]);
    CHECK_EQ(vectors[4 + c], table[4 + c] + table[2 * 4 + c]);
  }
}

TEST(AnIdThatItsWeightDropsNeedNotBeInTheTable) {
  for (float weight : {0.0f, -1.0f, NAN}) {
    RandomBatch<int64_t> batch = OneFeature(RowsKind::kSplits64, {1, 2, 5}, {0, 1, 3}, 2);
    const std::vector<float> weights = {0.5f, 3.0f, weight};
    batch.features[0].call.weights = weights.data();
    batch.features[0].call.combiner = Combiner::kMean;
    CHECK(ComplaintOf(&batch).what == IdFault::kNoSuchRow);
    batch.complaint = 0;
    batch.features[0].call.prune = batch.features[0].call.prune_weights = 1;
    CHECK(ComplaintOf(&batch).what == IdFault::kNone);
    const float* table = static_cast<const float*>(batch.tables[0].values);
    const float* vectors = static_cast<const float*>(batch.calls[0].vectors);
    for (int c = 0; c < 4; ++c) CHECK(Near(vectors[4 + c], table[2 * 4 + c]));
  }
}

TEST(AnIdThatFillsRowsMustBeInTheTable) {
  RandomBatch<int64_t> batch = OneFeature(RowsKind::kSplits64, {1}, {0, 1, 1}, 2);
  batch.features[0].call.fills = 1;
  batch.features[0].call.fill_id = 5;
  const Complaint found = ComplaintOf(&batch);
  CHECK(found.what == IdFault::kNoSuchRow);
  CHECK_EQ(found.example, 1);
  CHECK_EQ(static_cast<const float*>(batch.calls[0].vectors)[4], 0.0f);
}

TEST(IndicesOutOfOrderAreNoted) {
  const std::vector<std::vector<int64_t>> wrong = {
      {1, 0, 0, 0, 2, 0},   // falls
      {0, 0, 1, 0, 0, 1},   // falls at the end
      {0, 0, 1, 0, 3, 0},   // outside
      {-1, 0, 0, 0, 1, 0},  // outside
      {2, 0, 2, 0, 0, 0}};
  for (const auto& indices : wrong) {
    RandomBatch<int64_t> batch = OneFeature(RowsKind::kIndices, {1, 2, 3}, indices, 3);
    CHECK(ComplaintOf(&batch).what == IdFault::kUnordered);
  }
}

// Any order of the rows of some ids: noted unless it is the right one.
TEST(EveryOrderOfIndicesIsNotedOrRight) {
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 3000; ++trial) {
    const int64_t examples = 1 + random() % 5, count = random() % 7;
    std::vector<int64_t> ids(count, 1), indices;
    bool ordered = true;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = static_cast<int64_t>(random() % (examples + 2)) - (random() % 8 == 0);
      ordered = ordered && row >= 0 && row < examples && (i == 0 || row >= indices[2 * i - 2]);
      indices.insert(indices.end(), {row, 0});
    }
    RandomBatch<int64_t> batch = OneFeature(RowsKind::kIndices, ids, indices, examples);
    CHECK_EQ(ComplaintOf(&batch).what == IdFault::kNone, ordered);
  }
}

TEST(SplitsThatDoNotFitAreNoted) {
  const std::vector<std::vector<int64_t>> wrong = {
      {0, 2, 1, 3}, {1, 1, 2, 3}, {0, 1, 2, 2}, {0, 9, 9, 3}, {0, -4, 2, 3}, {0, 1, 2, INT64_MAX}};
  for (const auto& splits : wrong) {
    RandomBatch<int64_t> batch = OneFeature(RowsKind::kSplits64, {1, 2, 3}, splits, 3);
    CHECK(ComplaintOf(&batch).what == IdFault::kSplits);
  }
}

TEST(IndexOfUniqueIdsMustBeAmongThem) {
  RandomBatch<int64_t> batch = OneFeature(RowsKind::kSplits64, {1, 2}, {0, 1, 2}, 2);
  const std::vector<int64_t> values = {4, 3};
  batch.features[0].call.values = values.data();
  batch.features[0].call.unique = 2;
  const Complaint found = ComplaintOf(&batch);
  CHECK(found.what == IdFault::kNoSuchRow);
  CHECK_EQ(found.example, 1);
}

template <typename T>
void CheckNarrowFloats(Scalar type, bool weighted) {
  std::mt19937_64 random(7);
  for (int64_t dim : {1, 8, 16, 30, 128}) {
    std::vector<T> table(20 * dim), out(3 * dim);
    std::vector<float> wide(20 * dim), sums(3 * dim);
    std::normal_distribution<float> normal;
    for (size_t i = 0; i < table.size(); ++i) {
      Set(normal(random), &table[i]);
      wide[i] = ToFloat(table[i]);
    }
    const std::vector<int32_t> ids = {3, 19, 0, 7, 7, 1}, splits = {0, 1, 6, 6};
    FeatureCall feature;
    feature.ids = ids.data();
    feature.rows = splits.data();
    feature.kind = RowsKind::kSplits32;
    feature.count = 6;
    feature.examples = 3;
    feature.combiner = Combiner::kMean;
    feature.stride = dim;
    const std::vector<float> weights = {0.5f, 2.0f, 1.0f, 0.1f, 3.0f, 0.7f};
    if (weighted) {
      feature.weights = weights.data();
      feature.shortens = 1;
      feature.max_norm = 1.5f;
    }
    TableCall tables[1];
    tables[0].rows = 20;
    tables[0].dim = dim;
    GroupCall call;
    call.type = type;
    call.feature_count = call.table_count = 1;
    call.features = &feature;
    call.tables = tables;
    HostDevice device;
    tables[0].values = table.data();
    feature.vectors = out.data();
    LookUp<T, int32_t>(call, &device);
    tables[0].values = wide.data();
    feature.vectors = sums.data();
    LookUp<float, int32_t>(call, &device);
    for (size_t i = 0; i < out.size(); ++i) {
      T rounded;
      Set(sums[i], &rounded);
      // Lanes that have other columns add squares in another order.
      if (weighted) CHECK(Near(ToFloat(out[i]), sums[i], type == Scalar::kHalf ? 1e-3f : 1e-2f));
      if (!weighted) CHECK_EQ(out[i].bits, rounded.bits);
    }
  }
}

TEST(TablesOf16BitsAreSummedInFloat) {
  for (bool weighted : {false, true}) {
    CheckNarrowFloats<Half>(Scalar::kHalf, weighted);
    CheckNarrowFloats<Bfloat16>(Scalar::kBfloat16, weighted);
  }
}

}  // namespace
}  // namespace workbench::cuda
