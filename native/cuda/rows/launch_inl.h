#ifndef WORKBENCH_CUDA_ROWS_LAUNCH_INL_H_
#define WORKBENCH_CUDA_ROWS_LAUNCH_INL_H_

// Which features bodies take together, and launches of those with a group of lanes for each example.

#include <algorithm>
#include <cstdint>
#include <type_traits>
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
      body.ends.End(i - from, end += feature.examples);
    }
    device->Run(end, lanes, body);
  }
}

// Hands on those of the features that `is_one` tells, by as many lanes as their rows have packs, and
// at least as many as `fewest`: launch(pack, features, lanes), where decltype(pack)::value is the
// pack's columns.
template <typename T, typename IsOne, typename Launch>
void ByWidth(const GroupCall& call, int fewest, const IsOne& is_one, const Launch& launch) {
  for (int lanes = fewest; lanes <= kWarp; lanes *= 2) {
    std::vector<int> wide, narrow;
    for (int f = 0; f < call.feature_count; ++f) {
      const FeatureCall& feature = call.features[f];
      if (!is_one(feature)) continue;
      const TableCall& table = call.tables[feature.table];
      const bool packs = FitsPacks<T>(table.values, table.dim) &&
                         FitsPacks<T>(feature.vectors, feature.stride);
      if (std::max(fewest, LanesFor(table.dim, packs ? kWide<T> : 1)) != lanes) continue;
      (packs ? wide : narrow).push_back(f);
    }
    launch(std::integral_constant<int, kWide<T>>(), wide, lanes);
    launch(std::integral_constant<int, 1>(), narrow, lanes);
  }
}

// Launches a body for those of the features that `is_one` tells.
template <template <typename, typename, int> typename Body, typename T, typename Id,
          typename IsOne, typename Device>
void RunByExample(const GroupCall& call, const IsOne& is_one, Device* device) {
  ByWidth<T>(call, 1, is_one, [&](auto pack, const std::vector<int>& features, int lanes) {
    LaunchByExample<Body<T, Id, decltype(pack)::value>>(call, features, lanes, device);
  });
}

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_ROWS_LAUNCH_INL_H_
