#ifndef WORKBENCH_CUDA_ROWS_WEIGHTED_WEIGHTED_ENTRIES_INL_H_
#define WORKBENCH_CUDA_ROWS_WEIGHTED_WEIGHTED_ENTRIES_INL_H_

// Who asked for which row, where ids have weights: each id is an example of its own, whose gradient
// has the weight as a factor.

#include <algorithm>
#include <cstdint>

#include "cuda/calls.h"
#include "cuda/device/portable.h"
#include "cuda/rows/weighted/weighted_ids_inl.h"

namespace workbench::cuda {

template <typename T, typename Id>
struct FeatureWeightedEntries {
  static WeightedIds<Id> Ids(const FeatureCall& call, int feature, int64_t table_rows) {
    return WeightedIdsOf<Id>(call, feature, table_rows);
  }

  WeightedIds<Id> ids;
  const T* gradients;
  int64_t stride;
  int64_t first_entry, first_example;
  uint64_t table;  // shifted to its place in a key
};

// Writes the entries of examples: a group for each.
template <typename T, typename Id>
struct WeightedEntriesBody {
  using Feature = FeatureWeightedEntries<T, Id>;
  Feature features[kFeaturesAtOnce];
  FeatureEnds ends;
  uint64_t* keys;
  int32_t* who;
  const void** gradients;
  float* factors;
  int64_t first_example;
  uint64_t* complaint;

  WORKBENCH_DEVICE void operator()(const Group& group, int64_t number) const {
    const int64_t global = first_example + number;
    const Feature& feature = features[ends.FeatureOf(global)];
    const int64_t example = global - feature.first_example;
    const T* gradient = feature.gradients + example * feature.stride;
    int64_t first = 0, last = 0;
    feature.ids.in.Find(example, &first, &last, complaint);
    feature.ids.in.Check(group, example, first, last, complaint);
    const StayingIds staying = feature.ids.Staying(first, last, example, complaint);
    const float factor = staying.Factor();
    group.Each([&](int lane) {
      for (int64_t i = first + lane; i < last; i += group.lanes()) {
        const int64_t row = feature.ids.RowOf(i, example, nullptr);
        if (row < 0) continue;
        Put(feature, feature.first_entry + i, row, gradient, factor * feature.ids.WeightOf(i));
      }
      if (lane != 0 || staying.count > 0) return;
      const int64_t row = feature.ids.in.FillRow(example, complaint);
      if (row < 0) return;
      Put(feature, feature.first_entry + feature.ids.in.count + example, row, gradient, 1.0f);
    });
  }

  WORKBENCH_DEVICE void Put(const Feature& feature, int64_t entry, int64_t row,
                            const T* gradient, float factor) const {
    keys[entry] = feature.table | static_cast<uint64_t>(row);
    who[entry] = static_cast<int32_t>(entry);
    gradients[entry] = gradient;
    factors[entry] = factor;
  }
};

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_ROWS_WEIGHTED_WEIGHTED_ENTRIES_INL_H_
