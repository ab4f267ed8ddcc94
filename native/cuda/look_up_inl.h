#ifndef WORKBENCH_CUDA_LOOK_UP_INL_H_
#define WORKBENCH_CUDA_LOOK_UP_INL_H_

// The forward direction: a group of lanes for each example of each feature.

#include <cstdint>
#include <vector>

#include "cuda/calls.h"
#include "cuda/examples_inl.h"
#include "cuda/portable.h"
#include "cuda/sums_inl.h"

namespace workbench::cuda {

// As many as the parameters of a kernel have room for, which are 4 KB on any GPU.
constexpr int kFeaturesAtOnce = 20;
// A row of more ids is summed in double, as on a CPU.
constexpr int64_t kLongRow = 1024;

// Rows of a table in the order of an example's ids.
template <typename T, typename Id>
struct TableRowsOf {
  using Value = T;
  const ExampleIds<Id>& in;
  const T* table;
  int64_t dim, example;
  uint64_t* complaint;

  WORKBENCH_DEVICE const T* At(int64_t i, float*) const {
    const int64_t row = in.RowOf(i, example, complaint);
    return row < 0 ? nullptr : table + row * dim;
  }
};

template <typename T, typename Id>
struct FeatureLookUp {
  ExampleIds<Id> in;
  const T* table;
  int64_t dim;
  T* out;
  int64_t stride;
};

template <typename T, typename Id, int kPack>
struct LookUpBody {
  FeatureLookUp<T, Id> features[kFeaturesAtOnce];
  int64_t ends[kFeaturesAtOnce];  // of each feature the first number behind its examples
  uint64_t* complaint;

  WORKBENCH_DEVICE void operator()(const Group& group, int64_t number) const {
    int f = 0;
    while (number >= ends[f]) ++f;
    const FeatureLookUp<T, Id>& feature = features[f];
    const int64_t example = number - (f == 0 ? 0 : ends[f - 1]);
    int64_t first = 0, last = 0;
    feature.in.Find(example, &first, &last, complaint);
    feature.in.Check(group, example, first, last, complaint);
    if (last - first > kLongRow) {
      Combine<double>(group, feature, example, first, last);
    } else {
      Combine<float>(group, feature, example, first, last);
    }
  }

  template <typename Sum>
  WORKBENCH_DEVICE void Combine(const Group& group, const FeatureLookUp<T, Id>& feature,
                                int64_t example, int64_t first, int64_t last) const {
    const TableRowsOf<T, Id> rows = {feature.in, feature.table, feature.dim, example, complaint};
    EachPack<kPack>(group, feature.dim, [&](int, int64_t column) {
      Sum sums[kPack] = {};
      const int64_t added = AddRows<kPack>(rows, first, last, column, sums);
      Pack<T, kPack> out;
      if (added > 0) {
        const float divisor = DivisorOf(feature.in.combiner, added);
        WORKBENCH_UNROLL
        for (int c = 0; c < kPack; ++c) Set(static_cast<float>(sums[c] / divisor), &out.at[c]);
      } else {
        const int64_t row = feature.in.FillRow(example, complaint);
        if (row >= 0) {
          out = Load<T, kPack>(feature.table + row * feature.dim + column);
        } else {
          WORKBENCH_UNROLL
          for (int c = 0; c < kPack; ++c) Set(0.0f, &out.at[c]);
        }
      }
      Store(out, feature.out + example * feature.stride + column);
    });
  }
};

// Launches lookups of features that are read in packs of kPack by as many lanes.
template <typename T, typename Id, int kPack, typename Device>
void LookUpAlike(const GroupCall& call, const std::vector<int>& features, int lanes,
                 Device* device) {
  for (size_t from = 0; from < features.size(); from += kFeaturesAtOnce) {
    LookUpBody<T, Id, kPack> body = {};
    body.complaint = call.complaint;
    int64_t end = 0;
    for (size_t i = from; i < features.size() && i < from + kFeaturesAtOnce; ++i) {
      const FeatureCall& feature = call.features[features[i]];
      const TableCall& table = call.tables[feature.table];
      body.features[i - from] = {IdsOf<Id>(feature, features[i], table.rows),
                                 static_cast<const T*>(table.values), table.dim,
                                 static_cast<T*>(feature.vectors), feature.stride};
      body.ends[i - from] = end += feature.examples;
    }
    device->Run(end, lanes, body);
  }
}

template <typename T, typename Id, typename Device>
void LookUp(const GroupCall& call, Device* device) {
  for (int lanes = 1; lanes <= kWarp; lanes *= 2) {
    std::vector<int> wide, narrow;
    for (int f = 0; f < call.feature_count; ++f) {
      const FeatureCall& feature = call.features[f];
      const TableCall& table = call.tables[feature.table];
      const bool packs = FitsPacks<T>(table.values, table.dim) &&
                         FitsPacks<T>(feature.vectors, feature.stride);
      if (LanesFor(table.dim, packs ? kWide<T> : 1) == lanes) (packs ? wide : narrow).push_back(f);
    }
    LookUpAlike<T, Id, kWide<T>>(call, wide, lanes, device);
    LookUpAlike<T, Id, 1>(call, narrow, lanes, device);
  }
}

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_LOOK_UP_INL_H_
