#ifndef WORKBENCH_CUDA_ROWS_LOOK_UP_LOOK_UP_INL_H_
#define WORKBENCH_CUDA_ROWS_LOOK_UP_LOOK_UP_INL_H_

// Which groups of lanes look up what, and their launches.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cuda/calls.h"
#include "cuda/device/portable.h"
#include "cuda/rows/examples_inl.h"
#include "cuda/rows/launch_inl.h"
#include "cuda/rows/look_up/body_inl.h"
#include "cuda/rows/weighted/weighted_look_up_inl.h"

namespace workbench::cuda {

// Examples of a group at most.
constexpr int kExamplesAtOnce = 8;
// Of a group, also where fewer have columns: they read ids.
constexpr int kFewestLanes = 4;

// A group takes examples until they have this many rows together: fewer leave slots of the ring empty,
// with more the GPU waits for the last groups. Measured on an H200.
constexpr int64_t kFewestRows = 16;

// How many examples a group takes, where the features together have `examples` and `ids`. The GPU is to
// have enough groups.
template <typename Device>
int32_t AtOnce(int64_t examples, int64_t ids, int lanes, Device* device) {
  const int64_t warps = examples * lanes / kWarp, enough = device->Warps() / 4;
  const int most = std::min(lanes, kExamplesAtOnce);
  int32_t at_once = 1;
  while (at_once < most && at_once * ids < kFewestRows * examples &&
         warps / (2 * at_once) >= enough) {
    at_once *= 2;
  }
  return at_once;
}

// Launches lookups of features that are read in packs of kPack by as many lanes.
template <typename T, typename Id, int kPack, typename Device>
void LookUpAlike(const GroupCall& call, const std::vector<int>& features, int lanes,
                 Device* device) {
  int64_t examples = 0, ids = 0;
  for (int f : features) {
    examples += call.features[f].examples;
    ids += call.features[f].count;
  }
  LookUpBody<T, Id, kPack> body = {};
  body.at_once = AtOnce(examples, ids, lanes, device);
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
      body.ends.End(i - from, end += (feature.examples + body.at_once - 1) / body.at_once);
    }
    device->Run(end, lanes, body);
  }
}

template <typename T, typename Id, typename Device>
void LookUp(const GroupCall& call, Device* device) {
  // The kernels for weighted features keep rows in 64 bits.
  const auto goes_alone = [&](const FeatureCall& feature) {
    return IsWeighted(feature) || call.tables[feature.table].rows > kMostStreamRows;
  };
  const auto is_stream = [&](const FeatureCall& feature) { return !goes_alone(feature); };
  const auto launch = [&](auto pack, const std::vector<int>& features, int lanes) {
    LookUpAlike<T, Id, decltype(pack)::value>(call, features, lanes, device);
  };
  ByWidth<T>(call, kFewestLanes, is_stream, launch);
  RunByExample<WeightedLookUpBody, T, Id>(call, goes_alone, device);
}

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_ROWS_LOOK_UP_LOOK_UP_INL_H_
