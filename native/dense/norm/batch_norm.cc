#include "dense/norm/batch_norm.h"

#include <algorithm>
#include <cmath>

#include "instructions/clones.h"

namespace workbench {
namespace {

// Columns that are summed at once: all sums fit in registers, and a row's part of them is whole
// cache lines.
constexpr int kWide = 64;
constexpr int kNarrow = 16;
// Rows that are summed as floats, before their sum is added to a double.
constexpr int64_t kChunk = 128;

// The sums over all rows of two numbers of each of kWidth columns.
//
//   add: row, float [kWidth] twice; adds the row's numbers to them.
template <int kWidth, typename Add>
WORKBENCH_INLINE void SumRows(int64_t rows, double* first, double* second, const Add& add) {
  for (int j = 0; j < kWidth; ++j) first[j] = second[j] = 0;
  for (int64_t begin = 0; begin < rows; begin += kChunk) {
    const int64_t end = std::min(rows, begin + kChunk);
    float firsts[kWidth] = {}, seconds[kWidth] = {};
    for (int64_t row = begin; row < end; ++row) add(row, firsts, seconds);
    for (int j = 0; j < kWidth; ++j) {
      first[j] += firsts[j];
      second[j] += seconds[j];
    }
  }
}

template <int kWidth>
struct Normalize {
  const NormedColumns& in;
  const float* beta;
  float *y, *mean, *variance;

  WORKBENCH_INLINE void operator()(int64_t at) const {
    const float* x = in.x + at;
    const int64_t stride = in.columns;
    double sums[kWidth], squares[kWidth];
    SumRows<kWidth>(in.rows, sums, squares, [&](int64_t row, float* first, float*) WORKBENCH_INLINED {
      const float* from = x + row * stride;
      for (int j = 0; j < kWidth; ++j) first[j] += from[j];
    });
    float center[kWidth], scale[kWidth], shift[kWidth];
    for (int j = 0; j < kWidth; ++j) center[j] = static_cast<float>(sums[j] / in.rows);
    SumRows<kWidth>(in.rows, sums, squares, [&](int64_t row, float* first, float* second) WORKBENCH_INLINED {
      const float* from = x + row * stride;
      for (int j = 0; j < kWidth; ++j) {
        const float off = from[j] - center[j];
        first[j] += off;
        second[j] += off * off;
      }
    });
    for (int j = 0; j < kWidth; ++j) {
      // What the center is off the mean, which is much where that is far from zero.
      const double off = std::isfinite(sums[j]) ? sums[j] / in.rows : 0;
      mean[at + j] = static_cast<float>(center[j] + off);
      // Rounded it may fall below zero; NaN stays.
      variance[at + j] = static_cast<float>(std::max(squares[j] / in.rows - off * off, 0.0));
      scale[j] = in.gamma[at + j] / std::sqrt(variance[at + j] + in.epsilon);
      shift[j] = beta[at + j] - static_cast<float>(off) * scale[j];
    }
    for (int64_t row = 0; row < in.rows; ++row) {
      const float* from = x + row * stride;
      float* __restrict to = y + at + row * stride;
      for (int j = 0; j < kWidth; ++j) to[j] = (from[j] - center[j]) * scale[j] + shift[j];
    }
  }
};

template <int kWidth, bool kOfRelu>
struct NormalizeGradient {
  const NormedColumns& in;
  const float *mean, *variance, *gradient;
  const NormGradients& to;

  WORKBENCH_INLINE void operator()(int64_t at) const {
    const float *x = in.x + at, *given = gradient + at;
    const int64_t stride = in.columns;
    float center[kWidth];
    for (int j = 0; j < kWidth; ++j) center[j] = mean[at + j];
    double sums[kWidth], products[kWidth];
    SumRows<kWidth>(in.rows, sums, products, [&](int64_t row, float* first, float* second) WORKBENCH_INLINED {
      const float *from = x + row * stride, *each = given + row * stride;
      for (int j = 0; j < kWidth; ++j) {
        first[j] += each[j];
        second[j] += each[j] * (from[j] - center[j]);
      }
    });
    float scale[kWidth], slope[kWidth], shift[kWidth];
    for (int j = 0; j < kWidth; ++j) {
      const double inverse = 1 / std::sqrt(double{variance[at + j]} + in.epsilon);
      const double scaled = in.gamma[at + j] * inverse;
      to.beta[at + j] = static_cast<float>(sums[j]);
      to.gamma[at + j] = static_cast<float>(products[j] * inverse);
      scale[j] = static_cast<float>(scaled);
      slope[j] = static_cast<float>(-scaled * inverse * inverse * products[j] / in.rows);
      // Of one row nothing is left: both products are rounded alike.
      shift[j] = -static_cast<float>(sums[j] / in.rows) * scale[j];
    }
    const auto write = [&](int64_t row, float* __restrict result, float* sum) WORKBENCH_INLINED {
      const float *from = x + row * stride, *each = given + row * stride;
      for (int j = 0; j < kWidth; ++j) {
        float made = each[j] * scale[j] + ((from[j] - center[j]) * slope[j] + shift[j]);
        if constexpr (kOfRelu) made *= from[j] > 0 ? 1.0f : 0.0f;
        result[j] = made;
        if constexpr (kOfRelu) sum[j] += made;
      }
    };
    if constexpr (kOfRelu) {
      SumRows<kWidth>(in.rows, sums, products, [&](int64_t row, float* sum, float*) WORKBENCH_INLINED {
        write(row, to.x + at + row * stride, sum);
      });
      for (int j = 0; j < kWidth; ++j) to.bias[at + j] = static_cast<float>(sums[j]);
    } else {
      float* const into = to.x + at;
      for (int64_t row = 0; row < in.rows; ++row) write(row, into + row * stride, nullptr);
    }
  }
};

template <int kWidth>
using GradientOfAny = NormalizeGradient<kWidth, false>;
template <int kWidth>
using GradientOfRelu = NormalizeGradient<kWidth, true>;

// Calls `Part<width>` for columns [begin, end), as wide as they allow.
template <template <int> class Part, typename... Arguments>
WORKBENCH_INLINE void ByColumns(int64_t begin, int64_t end, const Arguments&... arguments) {
  int64_t at = begin;
  for (; at + kWide <= end; at += kWide) Part<kWide>{arguments...}(at);
  for (; at + kNarrow <= end; at += kNarrow) Part<kNarrow>{arguments...}(at);
  for (; at < end; ++at) Part<1>{arguments...}(at);
}

}  // namespace

WORKBENCH_CLONES void NormalizeColumns(const NormedColumns& in, const float* beta, int64_t begin,
                                       int64_t end, float* y, float* mean, float* variance) {
  ByColumns<Normalize>(begin, end, in, beta, y, mean, variance);
}

WORKBENCH_CLONES void NormalizeColumnsGradient(const NormedColumns& in, const float* mean,
                                               const float* variance, const float* gradient,
                                               int64_t begin, int64_t end,
                                               const NormGradients& to) {
  if (to.bias == nullptr) {
    ByColumns<GradientOfAny>(begin, end, in, mean, variance, gradient, to);
  } else {
    ByColumns<GradientOfRelu>(begin, end, in, mean, variance, gradient, to);
  }
}

}  // namespace workbench
