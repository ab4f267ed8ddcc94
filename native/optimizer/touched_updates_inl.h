#ifndef WORKBENCH_OPTIMIZER_ASKED_UPDATES_INL_H_
#define WORKBENCH_OPTIMIZER_ASKED_UPDATES_INL_H_

// Sums the gradients of a row and changes it at once, for rows of usual widths: sums stay in
// registers, and what a rule does is known to the compiler.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "combine/combine.h"
#include "instructions/clones.h"
#include "instructions/prefetch.h"
#include "instructions/vectors.h"
#include "optimizer/row_updates.h"

namespace workbench {

// Rows, and gradients, that the memory is asked for ahead of their use.
constexpr int64_t kRowsAhead = 12;
constexpr int64_t kRowsFarAhead = 128;
constexpr int32_t kGradientsAhead = 16;

// Changes table row rows[i] by the sum of its gradients, for i in [begin, end) of `count`.
//
//   step: step(sum, row, slot) changes a row of kDim values; kSlots: 1 where it has a slot as wide.
template <typename V, int64_t kDim, int kSlots, typename Step>
WORKBENCH_INLINE void UpdateTouchedOfWidth(const TouchedRows<float>& in, const DenseTable& table,
                                         const int64_t* rows, int64_t count, int64_t begin,
                                         int64_t end, const Step& step) {
  constexpr int64_t kBytes = kDim * sizeof(float), kAtOnce = sizeof(V) / sizeof(float);
  // Copies, for what is written to a table might change those that `in` points to.
  float* const values = table.values;
  float* const slots = table.slots[0];
  const int32_t* const firsts = in.firsts;
  const int32_t* const examples = in.examples;
  const float* const* const gradients = in.gradients;
  const float* const factors = in.factors;
  const auto fetch = [&](auto cache, int64_t i) WORKBENCH_INLINED {
    const int64_t at = rows[std::min(i, count - 1)] * kDim;
    Prefetch<decltype(cache)::value>(values + at, kBytes);
    if (kSlots > 0) Prefetch<decltype(cache)::value>(slots + at, kBytes);
  };
  const std::integral_constant<int, 3> nearest;
  const std::integral_constant<int, 2> next;
  if (begin >= end) return;
  for (int64_t i = begin; i < std::min(end, begin + kRowsAhead); ++i) fetch(nearest, i);
  const int32_t last = firsts[end] - 1;
  for (int64_t i = begin; i < end; ++i) {
    fetch(next, i + kRowsFarAhead);
    fetch(nearest, i + kRowsAhead);
    V sums[kDim / kAtOnce] = {};
    for (int32_t at = firsts[i]; at < firsts[i + 1]; ++at) {
      Prefetch<3>(gradients[examples[std::min(at + kGradientsAhead, last)]], kBytes);
      const V* const gradient = reinterpret_cast<const V*>(gradients[examples[at]]);
      const float factor = factors[examples[at]];
      for (int64_t v = 0; v < kDim / kAtOnce; ++v) sums[v] += gradient[v] * factor;
    }
    const int64_t at = rows[i] * kDim;
    step(reinterpret_cast<const float*>(sums), values + at, kSlots > 0 ? slots + at : nullptr);
  }
}

template <int64_t kDim>
using Width = std::integral_constant<int64_t, kDim>;

// Calls update(Width<dim>()) where dim is a usual width, and says whether it is.
template <typename Update>
bool AtUsualWidth(int64_t dim, const Update& update) {
  switch (dim) {
    case 8: update(Width<8>()); return true;
    case 16: update(Width<16>()); return true;
    case 32: update(Width<32>()); return true;
    case 64: update(Width<64>()); return true;
  }
  return false;
}

}  // namespace workbench

#endif  // WORKBENCH_OPTIMIZER_ASKED_UPDATES_INL_H_
