#ifndef WORKBENCH_CUDA_ROWS_WEIGHTED_WEIGHTED_IDS_INL_H_
#define WORKBENCH_CUDA_ROWS_WEIGHTED_WEIGHTED_IDS_INL_H_

// Ids of an example that have weights, or whose rows are shortened, on the device. Kernels of their
// own do these lookups, so that the others need no more registers for them.

#include <cmath>
#include <cstdint>

#include "cuda/calls.h"
#include "cuda/device/portable.h"
#include "cuda/device/scalars.h"
#include "cuda/rows/examples_inl.h"

namespace workbench::cuda {

// Whether a feature's lookup is one of these.
inline bool IsWeighted(const FeatureCall& feature) {
  return feature.weights != nullptr || feature.shortens != 0;
}

inline bool HasWeights(const GroupCall& call) {
  for (int f = 0; f < call.feature_count; ++f) {
    if (call.features[f].weights != nullptr) return true;
  }
  return false;
}

// What of an example's ids stays: how many, and what the sum of their rows is divided by.
struct StayingIds {
  int64_t count;
  float divisor;

  // What a gradient is multiplied with; 0 where the weights cancel out, and the sum is 0 then.
  WORKBENCH_DEVICE float Factor() const { return divisor == 0 ? 0.0f : 1.0f / divisor; }
};

template <typename Id>
struct WeightedIds {
  ExampleIds<Id> in;
  const float* weights;  // [count]; null: each is 1
  bool prune_weights;

  WORKBENCH_DEVICE float WeightOf(int64_t i) const {
    return weights == nullptr ? 1.0f : weights[i];
  }

  // As that of ExampleIds.
  WORKBENCH_DEVICE int64_t RowOf(int64_t i, int64_t example, uint64_t* complaint) const {
    // Not "<= 0": a weight that is no number goes too.
    if (prune_weights && !(WeightOf(i) > 0)) return kNoRow;
    return in.RowOf(i, example, complaint);
  }

  // Of ids [first, last), all of one example. Each lane reads all of them, in the CPU's order.
  WORKBENCH_DEVICE StayingIds Staying(int64_t first, int64_t last, int64_t example,
                                      uint64_t* complaint) const {
    int64_t count = 0;
    float total = 0;
    double long_total = 0;
    for (int64_t i = first; i < last; ++i) {
      if (RowOf(i, example, complaint) < 0) continue;
      const float weight = WeightOf(i);
      const float added = in.combiner == Combiner::kSqrtn ? weight * weight : weight;
      ++count;
      total += added;
      long_total += added;
    }
    if (in.combiner == Combiner::kSum) return {count, 1.0f};
    if (count > kLongRow) total = static_cast<float>(long_total);
    return {count, in.combiner == Combiner::kSqrtn ? std::sqrt(total) : total};
  }
};

template <typename Id>
inline WeightedIds<Id> WeightedIdsOf(const FeatureCall& call, int feature, int64_t table_rows) {
  return {IdsOf<Id>(call, feature, table_rows), call.weights, call.prune_weights != 0};
}

// What a row of this length squared is multiplied with to be no longer than max_norm, if it is to;
// NaN where the length is, and where both are 0.
WORKBENCH_DEVICE float Shortened(float squared, float max_norm) {
  const float length = std::sqrt(squared);
  return max_norm / (length <= max_norm ? max_norm : length);
}

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_ROWS_WEIGHTED_WEIGHTED_IDS_INL_H_
