#include "cuda/rows/gradients_inl.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "combine/combine.h"
#include "cuda/rows/weighted/weight_gradients_inl.h"
#include "lookup/grouped/table_rows.h"
#include "test/cuda/touched_rows.h"
#include "test/cuda/host_device.h"
#include "test/cuda/random_batch.h"
#include "test/support/check.h"

namespace workbench::cuda {
namespace {

template <typename Id>
void CheckGradients(int seeds, bool weighted) {
  for (int seed = 0; seed < seeds; ++seed) {
    std::mt19937_64 random(seed);
    // A row that fills examples is asked for behind those that ids ask for; hence rounding.
    const bool fills = seed % 2 != 0;
    RandomBatch<Id> batch(random, fills, weighted);
    HostDevice device;
    DeviceTouched touched(batch.call, Numbering::kTouched);
    FindTouched<float, Id>(batch.call, Numbering::kTouched, touched.memory.data(), &touched.touched, &device);
    CHECK_EQ(batch.complaint, 0u);
    for (int t = 0; t < batch.call.table_count; ++t) {
      const int64_t dim = batch.tables[t].dim;
      const CpuTouched expected(batch, t);
      const int64_t begin = touched.touched.table_firsts[t];
      const int64_t count = touched.touched.table_firsts[t + 1] - begin;
      CHECK_EQ(count, expected.rows.unique);
      std::vector<int64_t> rows(count);
      std::vector<float> sums(count * dim), cpu(count * dim);
      SumGradients<float>(batch.call, touched.touched, t, begin, count, rows.data(), sums.data(),
                          &device);
      workbench::SumGradients(expected.ToSum(dim), 0, count, cpu.data());
      for (int64_t r = 0; r < count; ++r) CHECK_EQ(rows[r], expected.rows.rows[r]);
      for (int64_t i = 0; i < count * dim; ++i) {
        CHECK(fills ? Near(sums[i], cpu[i], 1e-4f) : sums[i] == cpu[i]);
      }
    }
  }
}

TEST(GradientsAreThoseOfTheCpu) {
  CheckGradients<int64_t>(60, false);
  CheckGradients<int32_t>(60, false);
}

TEST(GradientsOfWeightedIdsAreThoseOfTheCpu) {
  CheckGradients<int64_t>(60, true);
  CheckGradients<int32_t>(60, true);
}

// What the CPU's algorithm makes of the gradient of a feature's weights.
template <typename Id>
std::vector<float> WeightGradientOf(const RandomFeature<Id>& feature, const TableCall& table) {
  const KeptIds kept = feature.Kept();
  const float* base = static_cast<const float*>(table.values);
  LookedUp<float> in;
  in.shards = &base;
  in.dim = table.dim;
  in.stride = feature.call.stride;
  in.rows = feature.call.examples;
  in.splits = kept.splits.data();
  in.table_row = kept.rows.data();
  in.weights = kept.weights.data();
  in.combiner = feature.call.combiner;
  if (feature.call.shortens != 0) in.max_norm = feature.call.max_norm;
  std::vector<float> of_kept(kept.rows.size()), out(feature.call.count);
  WeightGradient(in, static_cast<const float*>(feature.call.vectors), 0, in.rows, of_kept.data());
  for (size_t i = 0; i < of_kept.size(); ++i) {
    if (kept.sources[i] >= 0) out[kept.sources[i]] = of_kept[i];
  }
  return out;
}

template <typename Id>
void CheckWeightGradients(int seeds) {
  for (int seed = 0; seed < seeds; ++seed) {
    std::mt19937_64 random(seed);
    RandomBatch<Id> batch(random, /*fills=*/true, /*weighted=*/true);
    HostDevice device;
    WeightGradients<float, Id>(batch.call, &device);
    CHECK_EQ(batch.complaint, 0u);
    for (const RandomFeature<Id>& feature : batch.features) {
      if (feature.call.weights == nullptr) continue;
      const TableCall& table = batch.tables[feature.call.table];
      const std::vector<float> expected = WeightGradientOf(feature, table);
      // Each is a difference of products of vectors this long.
      float most = 1;
      for (float each : expected) most = std::max(most, std::abs(each));
      for (size_t i = 0; i < expected.size(); ++i) {
        CHECK(std::abs(feature.weight_gradient[i] - expected[i]) <= 1e-5f * most * table.dim);
      }
    }
  }
}

TEST(GradientsOfWeightsAreThoseOfTheCpu) {
  CheckWeightGradients<int64_t>(60);
  CheckWeightGradients<int32_t>(60);
}

// V2: each unique id is a row of its own, whether anybody asks for it or not.
TEST(GradientsOfUniqueIdsAreThoseOfTheCpu) {
  std::mt19937_64 random(11);
  for (int trial = 0; trial < 100; ++trial) {
    const int64_t unique = 1 + random() % 9, examples = random() % 9, dim = 1 + random() % 20;
    std::vector<int32_t> index, splits = {0};
    for (int64_t e = 0; e < examples; ++e) {
      for (int64_t i = random() % 4; i > 0; --i) index.push_back(random() % unique);
      splits.push_back(static_cast<int32_t>(index.size()));
    }
    std::normal_distribution<float> normal;
    std::vector<float> grad(examples * dim);
    for (float& value : grad) value = normal(random);
    FeatureCall feature;
    feature.ids = index.data();
    feature.rows = splits.data();
    feature.kind = RowsKind::kSplits32;
    feature.count = index.size();
    feature.examples = examples;
    feature.combiner = static_cast<Combiner>(random() % 3);
    feature.vectors = grad.data();
    feature.stride = dim;
    TableCall table;
    table.rows = unique;
    table.dim = dim;
    GroupCall call;
    call.feature_count = call.table_count = 1;
    call.features = &feature;
    call.tables = &table;
    HostDevice device;
    DeviceTouched touched(call, Numbering::kEvery);
    FindTouched<float, int32_t>(call, Numbering::kEvery, touched.memory.data(), &touched.touched, &device);
    std::vector<float> found(unique * dim, NAN), expected(unique * dim);
    SumGradients<float>(call, touched.touched, 0, 0, unique, nullptr, found.data(), &device);
    LookedUp<float> in;
    in.dim = dim;
    in.rows = examples;
    in.splits = splits.data();
    in.index = index.data();
    in.combiner = feature.combiner;
    float* out = expected.data();
    // A null index would say that ids are unique.
    if (!index.empty()) GatherGradient(in, grad.data(), 0, unique, expected.data(), &out);
    CHECK(found == expected);
  }
}

TEST(WhatTheLookUpLeavesOutHasNoGradient) {
  const std::vector<int64_t> ids = {1, 9, 0, 1}, indices = {0, 0, 0, 1, 1, 0, 0, 2};
  std::vector<float> grad = {1, 2};
  FeatureCall feature;
  feature.ids = ids.data();
  feature.rows = indices.data();
  feature.kind = RowsKind::kIndices;
  feature.count = 3;
  feature.examples = feature.sizes[0] = 2;
  feature.vectors = grad.data();
  feature.stride = 1;
  TableCall table;
  table.rows = 2;
  table.dim = 1;
  uint64_t complaint = 0;
  GroupCall call;
  call.wide_ids = 1;
  call.feature_count = call.table_count = 1;
  call.features = &feature;
  call.tables = &table;
  call.complaint = &complaint;
  HostDevice device;
  DeviceTouched touched(call, Numbering::kTouched);
  FindTouched<float, int64_t>(call, Numbering::kTouched, touched.memory.data(), &touched.touched, &device);
  CHECK(ReadComplaint(complaint).what == IdFault::kNoSuchRow);
  CHECK_EQ(touched.touched.table_firsts[1], 2);
  CHECK_EQ(touched.touched.firsts[2], 2);
  // Unordered ids are noted too.
  complaint = 0;
  feature.count = 4;
  DeviceTouched more(call, Numbering::kTouched);
  FindTouched<float, int64_t>(call, Numbering::kTouched, more.memory.data(), &more.touched, &device);
  CHECK(complaint != 0);
}

}  // namespace
}  // namespace workbench::cuda
