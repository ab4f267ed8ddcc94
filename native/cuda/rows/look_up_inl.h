#ifndef WORKBENCH_CUDA_ROWS_LOOK_UP_INL_H_
#define WORKBENCH_CUDA_ROWS_LOOK_UP_INL_H_

// Which groups of lanes look up what, and their launches.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cuda/calls.h"
#include "cuda/device/portable.h"
#include "cuda/rows/examples_inl.h"
#include "cuda/rows/launch_inl.h"
#include "cuda/rows/look_up_body_inl.h"
#include "cuda/rows/weighted/weighted_look_up_inl.h"

namespace workbench::cuda {

// Examples of a group at most.
constexpr int kExamplesAtOnce = 8;
// Of a group, also where fewer have columns: they read ids.
constexpr int kFewestLanes = 4;

// How features are looked up. What it goes by was measured on an H200.
struct LookUpShape {
  int64_t examples = 0, ids = 0;
  int lanes = 0;

  bool short_examples() const { return ids < 4 * examples; }
  // A warp of narrow groups waits for the longest of their streams.
  bool together() const { return lanes >= 16 || short_examples(); }
};

// As many examples for a group as leave the GPU enough groups: few of them do where each has rows of
// several examples to ask for at once.
template <typename Device>
int64_t AtOnce(const LookUpShape& shape, Device* device) {
  if (!shape.together()) return 1;
  const int64_t warps = shape.examples * shape.lanes / kWarp;
  const int64_t enough = shape.short_examples() ? device->Warps() / 4 : device->Warps();
  const int most = std::min(shape.lanes, kExamplesAtOnce);
  int64_t at_once = 1;
  while (at_once < most && warps / (2 * at_once) >= enough) at_once *= 2;
  return at_once;
}

// Launches lookups of features that are read in packs of kPack by as many lanes.
template <typename T, typename Id, int kPack, typename Device>
void LookUpAlike(const GroupCall& call, const std::vector<int>& features, int lanes,
                 Device* device) {
  LookUpShape shape;
  shape.lanes = lanes;
  for (int f : features) {
    shape.examples += call.features[f].examples;
    shape.ids += call.features[f].count;
  }
  LookUpBody<T, Id, kPack> body = {};
  body.at_once = AtOnce(shape, device);
  body.complaint = call.complaint;
  for (size_t from = 0; from < features.size(); from += kFeaturesAtOnce) {
    body.ends = {};
    int64_t end = 0;
    for (size_t i = from; i < features.size() && i < from + kFeaturesAtOnce; ++i) {
      const FeatureCall& feature = call.features[features[i]];
      const TableCall& table = call.tables[feature.table];
      body.features[i - from] = {IdsOf<Id>(feature, features[i], table.rows),
                                 static_cast<const T*>(table.values), table.dim,
                                 static_cast<T*>(feature.vectors), feature.stride};
      body.ends.at[i - from] = end += (feature.examples + body.at_once - 1) / body.at_once;
    }
    device->Run(end, shape.lanes, body);
  }
}

template <typename T, typename Id, typename Device>
void LookUp(const GroupCall& call, Device* device) {
  const auto is_one = [](const FeatureCall& feature) { return !IsWeighted(feature); };
  const auto launch = [&](auto pack, const std::vector<int>& features, int lanes) {
    LookUpAlike<T, Id, decltype(pack)::value>(call, features, lanes, device);
  };
  ByWidth<T>(call, kFewestLanes, is_one, launch);
  LookUpWeighted<T, Id>(call, device);
}

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_ROWS_LOOK_UP_INL_H_
