#ifndef WORKBENCH_CUDA_ROWS_WEIGHTED_LAUNCH_INL_H_
#define WORKBENCH_CUDA_ROWS_WEIGHTED_LAUNCH_INL_H_

// Launches of bodies that have a group of lanes for each example of some features.

#include <cstdint>
#include <vector>

#include "cuda/calls.h"
#include "cuda/device/portable.h"
#include "cuda/rows/examples_inl.h"

namespace workbench::cuda {

template <typename Body, typename Device>
void LaunchByExample(const GroupCall& call, const std::vector<int>& features, int lanes,
                     Device* device) {
  for (size_t from = 0; from < features.size(); from += kFeaturesAtOnce) {
    Body body = {};
    body.complaint = call.complaint;
    int64_t end = 0;
    for (size_t i = from; i < features.size() && i < from + kFeaturesAtOnce; ++i) {
      const FeatureCall& feature = call.features[features[i]];
      body.features[i - from] =
          Body::Feature::Of(feature, features[i], call.tables[feature.table]);
      body.ends.at[i - from] = end += feature.examples;
    }
    device->Run(end, lanes, body);
  }
}

// Those of the features that `is_one` tells, by as many lanes as their rows have packs.
template <template <typename, typename, int> typename Body, typename T, typename Id,
          typename IsOne, typename Device>
void RunByExample(const GroupCall& call, const IsOne& is_one, Device* device) {
  for (int lanes = 1; lanes <= kWarp; lanes *= 2) {
    std::vector<int> wide, narrow;
    for (int f = 0; f < call.feature_count; ++f) {
      const FeatureCall& feature = call.features[f];
      if (!is_one(feature)) continue;
      const TableCall& table = call.tables[feature.table];
      const bool packs = FitsPacks<T>(table.values, table.dim) &&
                         FitsPacks<T>(feature.vectors, feature.stride);
      if (LanesFor(table.dim, packs ? kWide<T> : 1) != lanes) continue;
      (packs ? wide : narrow).push_back(f);
    }
    LaunchByExample<Body<T, Id, kWide<T>>>(call, wide, lanes, device);
    LaunchByExample<Body<T, Id, 1>>(call, narrow, lanes, device);
  }
}

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_ROWS_WEIGHTED_LAUNCH_INL_H_
