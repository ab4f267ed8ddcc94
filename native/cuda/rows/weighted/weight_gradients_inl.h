#ifndef WORKBENCH_CUDA_ROWS_WEIGHTED_WEIGHT_GRADIENTS_INL_H_
#define WORKBENCH_CUDA_ROWS_WEIGHTED_WEIGHT_GRADIENTS_INL_H_

// Gradients of the weights of ids, as WeightGradient of combine.h has them: a group of lanes for
// each example.

#include <cstdint>

#include "cuda/calls.h"
#include "cuda/device/portable.h"
#include "cuda/device/scalars.h"
#include "cuda/rows/launch_inl.h"
#include "cuda/rows/sums_inl.h"
#include "cuda/rows/weighted/weighted_ids_inl.h"

namespace workbench::cuda {

template <typename T, typename Id>
struct WeightGradientOf {
  WeightedIds<Id> ids;
  const T* table;
  int64_t dim;
  const T* gradients;
  int64_t stride;
  float max_norm;
  bool shortens;
  float* out;

  static WeightGradientOf Of(const FeatureCall& feature, int number, const TableCall& table) {
    return {WeightedIdsOf<Id>(feature, number, table.rows),
            static_cast<const T*>(table.values),
            table.dim,
            static_cast<const T*>(feature.vectors),
            feature.stride,
            feature.max_norm,
            feature.shortens != 0,
            feature.weight_gradient};
  }
};

template <typename T, typename Id, int kPack>
struct WeightGradientBody {
  using Feature = WeightGradientOf<T, Id>;
  Feature features[kFeaturesAtOnce];
  FeatureEnds ends;
  uint64_t* complaint;

  WORKBENCH_DEVICE void operator()(const Group& group, int64_t number) const {
    const int f = ends.FeatureOf(number);
    const Feature& feature = features[f];
    const int64_t example = number - ends.Begin(f);
    int64_t first = 0, last = 0;
    feature.ids.in.Find(example, &first, &last, complaint);
    feature.ids.in.Check(group, example, first, last, complaint);
    const float factor = feature.ids.Staying(first, last, example, complaint).Factor();
    double whole = 0;  // the product of the example's vector and its gradient
    for (int64_t i = first; i < last; ++i) {
      const int64_t row = feature.ids.RowOf(i, example, nullptr);
      if (row < 0) continue;
      const float found = factor * Along(group, feature, row, example);
      whole += feature.ids.WeightOf(i) * found;
      // By the lane that reads it below.
      group.Each([&](int lane) {
        if (lane == ((i - first) & (group.lanes() - 1))) feature.out[i] = found;
      });
    }
    if (feature.ids.in.combiner == Combiner::kSum) return;
    const bool mean = feature.ids.in.combiner == Combiner::kMean;
    group.Each([&](int lane) {
      for (int64_t i = first + lane; i < last; i += group.lanes()) {
        if (feature.ids.RowOf(i, example, nullptr) < 0) continue;
        const float weighed = mean ? factor : factor * factor * feature.ids.WeightOf(i);
        feature.out[i] -= static_cast<float>(whole) * weighed;
      }
    });
  }

  // The product of a row, shortened if it is to be, and the gradient of an example.
  WORKBENCH_DEVICE float Along(const Group& group, const Feature& feature, int64_t row,
                               int64_t example) const {
    PerLane<float> products, squares;
    EachPack<kPack>(group, feature.dim, [&](int lane, int64_t column) {
      const auto values = Load<T, kPack>(feature.table + row * feature.dim + column);
      const auto given =
          Load<T, kPack>(feature.gradients + example * feature.stride + column);
      WORKBENCH_UNROLL
      for (int c = 0; c < kPack; ++c) {
        const float value = ToFloat(values.at[c]);
        products[lane] += value * ToFloat(given.at[c]);
        squares[lane] += value * value;
      }
    });
    const float product = group.Sum(products);
    return feature.shortens ? Shortened(group.Sum(squares), feature.max_norm) * product : product;
  }
};

// An id that is dropped has a gradient of 0.
template <typename T, typename Id, typename Device>
void WeightGradients(const GroupCall& call, Device* device) {
  for (int f = 0; f < call.feature_count; ++f) {
    const FeatureCall& feature = call.features[f];
    if (feature.weight_gradient == nullptr) continue;
    device->Fill(0, feature.count * static_cast<int64_t>(sizeof(float)), feature.weight_gradient);
  }
  const auto is_one = [](const FeatureCall& feature) { return feature.weight_gradient != nullptr; };
  RunByExample<WeightGradientBody, T, Id>(call, is_one, device);
}

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_ROWS_WEIGHTED_WEIGHT_GRADIENTS_INL_H_
