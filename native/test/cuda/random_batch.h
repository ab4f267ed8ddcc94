#ifndef WORKBENCH_TEST_CUDA_RANDOM_BATCH_H_
#define WORKBENCH_TEST_CUDA_RANDOM_BATCH_H_

// Random tables and features for lookups on a device, and what the CPU's algorithms make of them.

#include <cmath>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "combine/combine.h"
#include "cuda/calls.h"
#include "cuda/complaint.h"
#include "lookup/row_ids.h"
#include "test/support/check.h"

namespace workbench::cuda {

// Ids of an example that stay, as the CPU has them.
struct KeptIds {
  std::vector<int32_t> splits;
  std::vector<int64_t> rows;
  std::vector<float> weights;    // of weighted ids
  std::vector<int32_t> sources;  // where they stood; -1 of a filled one
};

template <typename Id>
struct RandomFeature {
  std::vector<Id> ids;
  std::vector<int64_t> indices, splits64, values, sizes;
  std::vector<int32_t> splits32;
  std::vector<float> weights, weight_gradient;
  FeatureCall call;

  int64_t Row(int64_t i) const { return call.values == nullptr ? ids[i] : values[ids[i]]; }

  // Which rows are asked for.
  KeptIds Kept() const {
    KeptIds kept;
    SparseIds<Id> in;
    in.ids = ids.data();
    in.count = call.count;
    std::vector<int64_t> pairs;
    int64_t example = 0;
    for (int64_t i = 0; i < call.count; ++i) {
      while (example + 1 < call.examples && splits64[example + 1] <= i) ++example;
      pairs.insert(pairs.end(), {example, 0});
    }
    const int64_t shape[] = {call.examples, 1};
    in.indices = pairs.data();
    in.dense_shape = shape;
    in.weights = call.weights;
    KeepRules rules;
    rules.prune_weights = call.prune_weights != 0;
    rules.prune_ids = call.prune != 0;
    rules.fill_empty_rows = call.fills != 0;
    rules.fill_id = call.fill_id;
    kept.splits.resize(call.examples + 1);
    CHECK_EQ(SplitRows(in, rules, call.examples, kept.splits.data()), "");
    std::vector<int32_t> cursors(call.examples);
    std::vector<Id> found(kept.splits.back());
    kept.sources.resize(found.size());
    if (call.weights != nullptr) kept.weights.resize(found.size());
    KeepIds<Id>(in, rules, call.examples, kept.splits.data(), cursors.data(), found.data(),
                call.weights == nullptr ? nullptr : kept.weights.data(), kept.sources.data());
    for (Id id : found) kept.rows.push_back(call.values == nullptr ? id : values[id]);
    return kept;
  }
};

template <typename Id>
struct RandomBatch {
  std::deque<std::vector<float>> memory;
  std::vector<TableCall> tables;
  std::deque<RandomFeature<Id>> features;
  std::vector<FeatureCall> calls;
  uint64_t complaint = 0;
  GroupCall call;

  RandomBatch(std::mt19937_64& random, bool fills, bool weighted = false) {
    const int table_count = 1 + random() % 4, feature_count = 1 + random() % 150;
    for (int t = 0; t < table_count; ++t) AddTable(random);
    for (int f = 0; f < feature_count; ++f) {
      AddFeature(random, fills);
      if (weighted) AddWeights(random, &features.back());
    }
    Finish();
  }

  RandomBatch() = default;

  void Finish() {
    calls.clear();
    for (const auto& each : features) calls.push_back(each.call);
    call.wide_ids = sizeof(Id) == 8;
    call.feature_count = static_cast<int32_t>(calls.size());
    call.table_count = static_cast<int32_t>(tables.size());
    call.features = calls.data();
    call.tables = tables.data();
    call.complaint = &complaint;
  }

  // Floats that begin at a border of 16 bytes, or not.
  float* Floats(std::mt19937_64& random, int64_t count, bool aligned) {
    std::normal_distribution<float> normal;
    std::vector<float>& values = memory.emplace_back(count + 8);
    for (float& value : values) value = normal(random);
    float* begin = values.data();
    while (reinterpret_cast<uintptr_t>(begin) % 16 != (aligned ? 0 : 4)) ++begin;
    return begin;
  }

  void AddTable(std::mt19937_64& random) {
    TableCall table;
    table.rows = 1 + random() % 40;
    table.dim = random() % 2 == 0 ? 4 * (1 + random() % 33) : 1 + random() % 130;
    const bool aligned = random() % 4 != 0;
    table.values = Floats(random, table.rows * table.dim, aligned);
    for (float*& slot : table.slots) {
      slot = Floats(random, table.rows * table.dim, aligned);
      for (int64_t i = 0; i < table.rows * table.dim; ++i) slot[i] = std::abs(slot[i]) + 0.1f;
    }
    tables.push_back(table);
  }

  // Weights that cancel out at times, a length that some rows exceed, or both, or none.
  static void AddWeights(std::mt19937_64& random, RandomFeature<Id>* feature) {
    FeatureCall& to = feature->call;
    if (random() % 3 == 0) {
      to.shortens = 1;
      to.max_norm = 0.5f + 0.5f * (random() % 20);
    }
    if (random() % 3 == 0) return;
    for (int64_t i = 0; i < to.count; ++i) {
      feature->weights.push_back(0.25f * (random() % 9) - 0.5f);
    }
    to.prune_weights = to.prune != 0 && to.combiner != Combiner::kSum;
    to.weights = feature->weights.data();
    feature->weight_gradient.assign(to.count, NAN);
    to.weight_gradient = feature->weight_gradient.data();
  }

  void AddFeature(std::mt19937_64& random, bool fills) {
    RandomFeature<Id>& feature = features.emplace_back();
    FeatureCall& to = feature.call;
    to.table = random() % tables.size();
    const TableCall& table = tables[to.table];
    to.kind = static_cast<RowsKind>(random() % 4);
    to.combiner = static_cast<Combiner>(random() % 3);
    to.prune = random() % 2;
    to.fills = fills && random() % 2;
    to.fill_id = random() % table.rows;
    AddExamples(random, &feature);
    if (random() % 4 == 0) AddValues(random, table.rows, &feature);
    const int64_t named = to.values == nullptr ? table.rows : to.unique;
    for (int64_t i = 0; i < to.count; ++i) {
      const bool pruned = to.prune != 0 && random() % 4 == 0;
      feature.ids.push_back(static_cast<Id>(pruned ? -1 - static_cast<int64_t>(random() % 3)
                                                   : static_cast<int64_t>(random() % named)));
    }
    to.ids = feature.ids.data();
    to.stride = table.dim + (random() % 2 == 0 ? 0 : random() % 3 * 2);
    to.vectors = Floats(random, to.examples * to.stride + table.dim, random() % 4 != 0);
  }

 private:
  void AddValues(std::mt19937_64& random, int64_t rows, RandomFeature<Id>* feature) {
    FeatureCall& to = feature->call;
    to.prune = to.fills = 0;
    to.unique = 1 + random() % 10;
    for (int64_t u = 0; u < to.unique; ++u) feature->values.push_back(random() % rows);
    to.values = feature->values.data();
  }

  void AddExamples(std::mt19937_64& random, RandomFeature<Id>* feature) {
    FeatureCall& to = feature->call;
    to.examples = random() % 30;
    to.rank = to.kind == RowsKind::kIndices ? 2 + random() % (kMostRank - 1) : 2;
    feature->sizes.assign(to.rank - 1, 1);
    if (to.rank > 2) {
      // Rows of a higher rank: as many in each of a few blocks.
      feature->sizes[0] = 1 + random() % 3;
      feature->sizes[to.rank - 2] = 1 + random() % 6;
      to.examples = feature->sizes[0] * feature->sizes[to.rank - 2];
    } else {
      feature->sizes[0] = to.examples;
    }
    feature->splits64.push_back(0);
    const bool one_each = random() % 3 == 0 || to.kind == RowsKind::kDense;
    for (int64_t e = 0; e < to.examples; ++e) {
      const bool is_long = random() % 500 == 0;
      const int64_t ids = one_each ? 1 : is_long ? 1500 : random() % 7;
      feature->splits64.push_back(feature->splits64.back() + ids);
      for (int64_t i = 0; i < ids; ++i) AddIndices(e, i, to.rank, feature);
    }
    to.count = feature->splits64.back();
    feature->splits32.assign(feature->splits64.begin(), feature->splits64.end());
    for (int d = 0; d + 1 < to.rank; ++d) to.sizes[d] = feature->sizes[d];
    to.rows = to.kind == RowsKind::kSplits32   ? static_cast<const void*>(feature->splits32.data())
              : to.kind == RowsKind::kSplits64 ? static_cast<const void*>(feature->splits64.data())
              : to.kind == RowsKind::kIndices  ? static_cast<const void*>(feature->indices.data())
                                               : nullptr;
  }

  static void AddIndices(int64_t example, int64_t position, int rank, RandomFeature<Id>* feature) {
    std::vector<int64_t> at(rank, 0);
    at[rank - 1] = position;
    for (int d = rank - 2; d >= 0; --d) {
      at[d] = example % feature->sizes[d];
      example /= feature->sizes[d];
    }
    feature->indices.insert(feature->indices.end(), at.begin(), at.end());
  }
};

inline bool Near(float found, float expected, float tolerance = 1e-5f) {
  return std::abs(found - expected) <= tolerance * std::max(1.0f, std::abs(expected));
}

}  // namespace workbench::cuda

#endif  // WORKBENCH_TEST_CUDA_RANDOM_BATCH_H_
