#ifndef WORKBENCH_CUDA_ROWS_GRADIENTS_INL_H_
#define WORKBENCH_CUDA_ROWS_GRADIENTS_INL_H_

// The gradient of each row that was asked for: the sum over all who asked, in the order of their
// ids. A group of lanes for each row.

#include <cstdint>

#include "cuda/calls.h"
#include "cuda/device/portable.h"
#include "cuda/rows/touched_inl.h"
#include "cuda/rows/sums_inl.h"

namespace workbench::cuda {

// The gradients of the examples that asked for a row.
template <typename T>
struct TouchedGradients {
  using Value = T;
  const int32_t* who;
  const void* const* gradients;
  const float* factors;

  WORKBENCH_DEVICE const T* At(int64_t entry, float* factor) const {
    const int32_t example = who[entry];
    *factor = factors[example];
    return static_cast<const T*>(gradients[example]);
  }
};

// Whether the gradients of all features of a table can be read in packs.
template <typename T>
bool GradientsFitPacks(const GroupCall& call, int table) {
  bool fit = call.tables[table].dim % kWide<T> == 0;
  for (int f = 0; f < call.feature_count; ++f) {
    const FeatureCall& feature = call.features[f];
    if (feature.table == table) fit = fit && FitsPacks<T>(feature.vectors, feature.stride);
  }
  return fit;
}

template <typename T, int kPack>
struct SumBody {
  TouchedGradients<T> in;
  const uint64_t* keys;
  const int32_t* firsts;  // of the first row of these
  int64_t dim;
  uint64_t row_mask;
  int64_t* rows;
  T* sums;

  WORKBENCH_DEVICE void operator()(const Group& group, int64_t number) const {
    const int64_t first = firsts[number], last = firsts[number + 1];
    EachPack<kPack>(group, dim, [&](int, int64_t column) {
      float sum[kPack] = {};
      AddRows<kPack>(in, first, last, column, sum);
      Pack<T, kPack> out;
      WORKBENCH_UNROLL
      for (int c = 0; c < kPack; ++c) Set(sum[c], &out.at[c]);
      Store(out, sums + number * dim + column);
    });
    if (rows == nullptr) return;
    group.Each([&](int lane) {
      if (lane == 0) rows[number] = static_cast<int64_t>(keys[first] & row_mask);
    });
  }
};

template <typename T, typename Device>
void SumGradients(const GroupCall& call, const Touched& touched, int table, int64_t begin,
                  int64_t count, int64_t* rows, void* sums, Device* device) {
  const int64_t dim = call.tables[table].dim;
  const TouchedGradients<T> in = {touched.who, touched.gradients, touched.factors};
  const uint64_t mask = (uint64_t{1} << touched.row_bits) - 1;
  const int32_t* firsts = touched.firsts + begin;
  if (GradientsFitPacks<T>(call, table) && FitsPacks<T>(sums, dim)) {
    device->Run(count, LanesFor(dim, kWide<T>),
                SumBody<T, kWide<T>>{in, touched.keys, firsts, dim, mask, rows,
                                     static_cast<T*>(sums)});
  } else {
    device->Run(count, LanesFor(dim, 1),
                SumBody<T, 1>{in, touched.keys, firsts, dim, mask, rows, static_cast<T*>(sums)});
  }
}

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_ROWS_GRADIENTS_INL_H_
