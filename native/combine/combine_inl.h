#ifndef WORKBENCH_COMBINE_COMBINE_INL_H_
#define WORKBENCH_COMBINE_COMBINE_INL_H_

// Bodies of combine.h, to be compiled for each T and each instruction set.

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "combine/combine.h"
#include "combine/usual_widths.h"
#include "instructions/clones.h"
#include "instructions/prefetch.h"

namespace workbench::combine {

// Columns that are summed in registers at a time.
constexpr int kBlock = 64;
constexpr int kNarrow = 16;

template <typename T>
WORKBENCH_INLINE const T* VectorOf(const LookedUp<T>& in, int64_t id) {
  if (in.vectors != nullptr) return in.vectors[id];
  if (in.table_row != nullptr) return in.shards[0] + in.table_row[in.Unique(id)] * in.dim;
  int shard = 0;
  const int64_t at = in.Place(in.Unique(id), &shard);
  return in.shards[shard] + at * in.dim;
}

template <typename T>
WORKBENCH_INLINE float SquaredLength(const T* vector, int64_t dim) {
  float lanes[kNarrow] = {0};
  int64_t c = 0;
  for (; c + kNarrow <= dim; c += kNarrow) {
    for (int i = 0; i < kNarrow; ++i) {
      const float value = static_cast<float>(vector[c + i]);
      lanes[i] += value * value;
    }
  }
  float sum = 0;
  for (int i = 0; i < kNarrow; ++i) sum += lanes[i];
  for (; c < dim; ++c) sum += static_cast<float>(vector[c]) * static_cast<float>(vector[c]);
  return sum;
}

template <typename A, typename B>
WORKBENCH_INLINE float Product(const A* a, const B* b, int64_t dim) {
  float lanes[kNarrow] = {0};
  int64_t c = 0;
  for (; c + kNarrow <= dim; c += kNarrow) {
    for (int i = 0; i < kNarrow; ++i) {
      lanes[i] += static_cast<float>(a[c + i]) * static_cast<float>(b[c + i]);
    }
  }
  float sum = 0;
  for (int i = 0; i < kNarrow; ++i) sum += lanes[i];
  for (; c < dim; ++c) sum += static_cast<float>(a[c]) * static_cast<float>(b[c]);
  return sum;
}

// What a vector of this length is multiplied with to be no longer than max_norm. As in
// tf.clip_by_norm it is NaN where the length is, and where both are 0.
WORKBENCH_INLINE float Shortening(float length, float max_norm) {
  return max_norm / (length <= max_norm ? max_norm : length);
}

template <typename T>
WORKBENCH_INLINE float Shortened(const LookedUp<T>& in, const T* vector) {
  if (in.max_norm < 0) return 1.0f;
  return Shortening(std::sqrt(SquaredLength(vector, in.dim)), in.max_norm);
}

template <typename Sum, typename T>
WORKBENCH_INLINE float SumWeights(const LookedUp<T>& in, int64_t row) {
  Sum total = 0;
  for (int32_t id = in.splits[row]; id < in.splits[row + 1]; ++id) {
    total += in.combiner == Combiner::kMean ? in.weights[id] : in.weights[id] * in.weights[id];
  }
  return static_cast<float>(total);
}

// What a row's sum is divided by; 0 where its weights cancel out, and then the row is 0.
template <typename T>
WORKBENCH_INLINE float Divisor(const LookedUp<T>& in, int64_t row) {
  if (in.combiner == Combiner::kSum) return 1.0f;
  float total = 0;
  if (in.weights == nullptr) {
    total = static_cast<float>(in.splits[row + 1] - in.splits[row]);
  } else {
    total = IsLong(in.splits, row) ? SumWeights<double>(in, row) : SumWeights<float>(in, row);
  }
  return DivisorOf(in.combiner, total);
}

template <typename T>
WORKBENCH_INLINE float Factor(const LookedUp<T>& in, int64_t row) {
  const float divisor = Divisor(in, row);
  return divisor == 0 ? 0.0f : 1.0f / divisor;
}

// Vectors in another order lie anywhere; the processor does not guess the next one.
template <typename T>
WORKBENCH_INLINE void FetchAhead(const LookedUp<T>& in, int32_t id, int32_t last) {
  const bool anywhere = in.table_row != nullptr || in.vectors != nullptr;
  if (!anywhere && in.index == nullptr && in.permutation == nullptr) return;
  const int64_t bytes = in.dim * static_cast<int64_t>(sizeof(T));
  if (in.table_row != nullptr && !in.fetched && id + kFarAhead < last) {
    Prefetch<2>(VectorOf(in, id + kFarAhead), bytes);
  }
  if (id + kAhead < last) Prefetch<3>(VectorOf(in, id + kAhead), bytes);
}

template <typename T, typename Sum>
WORKBENCH_INLINE T Rounded(Sum sum) {
  return static_cast<T>(static_cast<float>(sum));
}

// Sums columns [from, from + count) of one row; count is a constant or at most kBlock.
template <typename Sum, typename T>
WORKBENCH_INLINE void SumColumns(const LookedUp<T>& in, int64_t row, float divisor, int64_t from,
                                 int count, T* out) {
  Sum sums[kBlock] = {0};
  const int32_t begin = in.splits[row], end = in.splits[row + 1];
  const bool plain = in.weights == nullptr && in.max_norm < 0;
  for (int32_t id = begin; id < end; ++id) {
    if constexpr (std::is_same_v<Sum, double>) FetchAhead(in, id, end);
    const T* vector = VectorOf(in, id);
    if (plain) {
      for (int c = 0; c < count; ++c) sums[c] += static_cast<float>(vector[from + c]);
    } else {
      const float weight = in.weights == nullptr ? 1.0f : in.weights[id];
      const float scale = Shortened(in, vector);
      for (int c = 0; c < count; ++c) {
        sums[c] += static_cast<float>(vector[from + c]) * scale * weight;
      }
    }
  }
  if (divisor == 0) {
    for (int c = 0; c < count; ++c) out[from + c] = static_cast<T>(0.0f);
  } else if (divisor == 1) {
    for (int c = 0; c < count; ++c) out[from + c] = Rounded<T>(sums[c]);
  } else {
    for (int c = 0; c < count; ++c) out[from + c] = Rounded<T>(sums[c] / divisor);
  }
}

template <typename Sum, typename T>
WORKBENCH_INLINE void CombineRow(const LookedUp<T>& in, int64_t row, T* out) {
  const float divisor = Divisor(in, row);
  int64_t c = 0;
  for (; c + kBlock <= in.dim; c += kBlock) SumColumns<Sum>(in, row, divisor, c, kBlock, out);
  for (; c + kNarrow <= in.dim; c += kNarrow) SumColumns<Sum>(in, row, divisor, c, kNarrow, out);
  if (c < in.dim) SumColumns<Sum>(in, row, divisor, c, static_cast<int>(in.dim - c), out);
}

// Whether rows lie in a table, or anywhere, are of usual width, and were combined.
template <typename T>
WORKBENCH_INLINE bool CombinedTable(const LookedUp<T>& in, int64_t begin, int64_t end, T* out) {
  if constexpr (std::is_same_v<T, float>) {
    if (in.index != nullptr || in.weights != nullptr || in.max_norm >= 0) return false;
    if (in.vectors == nullptr && in.table_row == nullptr) return false;
    return CombinedWidth(in, begin, end, out);
  }
  return false;
}

template <typename T>
WORKBENCH_INLINE void Combine(const LookedUp<T>& in, int64_t begin, int64_t end, T* out) {
  if (CombinedTable(in, begin, end, out)) return;
  const int32_t last = in.splits[in.rows];
  const int64_t stride = in.stride == 0 ? in.dim : in.stride;
  for (int64_t row = begin; row < end; ++row) {
    if (IsLong(in.splits, row)) {
      CombineRow<double>(in, row, out + row * stride);
      continue;
    }
    for (int32_t id = in.splits[row]; id < in.splits[row + 1]; ++id) FetchAhead(in, id, last);
    CombineRow<float>(in, row, out + row * stride);
  }
}

// The gradient of a vector v from the gradient g of scale · v, where scale holds the length at
// max_norm: scale · (g − v (v·g) / |v|²). As tf.clip_by_norm has it, also where both are equal.
// Where the length overflows, scale and gradient are 0; where a value is infinite, they are NaN.
template <typename T, typename G>
WORKBENCH_INLINE void WriteGradient(const LookedUp<T>& in, const T* vector, const G* grad,
                                    float factor, T* out) {
  float scale = factor, along = 0;
  if (in.max_norm >= 0) {
    const float squared = SquaredLength(vector, in.dim);
    const float length = std::sqrt(squared);
    scale = factor * Shortening(length, in.max_norm);
    if (length == std::numeric_limits<float>::infinity()) {
      for (int64_t c = 0; c < in.dim; ++c) along += 0.0f * static_cast<float>(vector[c]);
    } else if (length > 0 && length >= in.max_norm) {
      scale = factor * in.max_norm / length;
      along = scale * Product(vector, grad, in.dim) / squared;
    }
  }
  if (along == 0) {
    for (int64_t c = 0; c < in.dim; ++c) out[c] = static_cast<T>(static_cast<float>(grad[c]) * scale);
  } else {
    for (int64_t c = 0; c < in.dim; ++c) {
      out[c] = static_cast<T>(static_cast<float>(grad[c]) * scale -
                              static_cast<float>(vector[c]) * along);
    }
  }
}

template <typename T>
WORKBENCH_INLINE void SpreadGradient(const LookedUp<T>& in, const T* grad, int64_t begin,
                                     int64_t end, T* const* out) {
  for (int64_t row = begin; row < end; ++row) {
    const float factor = Factor(in, row);
    for (int32_t id = in.splits[row]; id < in.splits[row + 1]; ++id) {
      int shard = 0;
      const int64_t at = in.Place(id, &shard) * in.dim;
      const float weight = in.weights == nullptr ? 1.0f : in.weights[id];
      const T* vector = in.max_norm < 0 ? nullptr : in.shards[shard] + at;
      WriteGradient(in, vector, grad + row * in.dim, factor * weight, out[shard] + at);
    }
  }
}

template <typename T>
WORKBENCH_INLINE void GatherGradient(const LookedUp<T>& in, const T* grad, int64_t begin,
                                     int64_t end, float* sums, T* const* out) {
  std::fill(sums + begin * in.dim, sums + end * in.dim, 0.0f);
  for (int64_t row = 0; row < in.rows; ++row) {
    const float factor = Factor(in, row);
    const T* from = grad + row * in.dim;
    for (int32_t id = in.splits[row]; id < in.splits[row + 1]; ++id) {
      const int32_t unique = in.Unique(id);
      if (unique < begin || unique >= end) continue;
      const float scale = factor * (in.weights == nullptr ? 1.0f : in.weights[id]);
      float* to = sums + unique * in.dim;
      for (int64_t c = 0; c < in.dim; ++c) to[c] += static_cast<float>(from[c]) * scale;
    }
  }
  for (int64_t unique = begin; unique < end; ++unique) {
    int shard = 0;
    const int64_t at = in.Place(unique, &shard) * in.dim;
    const float* sum = sums + unique * in.dim;
    T* to = out[shard] + at;
    const bool stands = static_cast<const void*>(sum) == static_cast<const void*>(to);
    if (in.max_norm < 0 && stands) continue;
    WriteGradient(in, in.max_norm < 0 ? nullptr : in.shards[shard] + at, sum, 1.0f, to);
  }
}

// With o = Σ w c / W, where c are the shortened vectors: the mean's do/dw = (c − o) / W with
// W = Σ w, sqrtn's do/dw = c / W − o w / W² with W = √(Σ w²).
template <typename T>
WORKBENCH_INLINE void WeightGradient(const LookedUp<T>& in, const T* grad, int64_t begin,
                                     int64_t end, float* out) {
  const int64_t stride = in.stride == 0 ? in.dim : in.stride;
  for (int64_t row = begin; row < end; ++row) {
    const float factor = Factor(in, row);
    const T* from = grad + row * stride;
    double whole = 0;  // o·g
    for (int32_t id = in.splits[row]; id < in.splits[row + 1]; ++id) {
      const T* vector = VectorOf(in, id);
      out[id] = factor * Shortened(in, vector) * Product(vector, from, in.dim);
      whole += in.weights[id] * out[id];
    }
    if (in.combiner == Combiner::kSum) continue;
    for (int32_t id = in.splits[row]; id < in.splits[row + 1]; ++id) {
      const bool mean = in.combiner == Combiner::kMean;
      const float part = static_cast<float>(whole);
      out[id] -= part * (mean ? factor : factor * factor * in.weights[id]);
    }
  }
}

// Columns [from, from + count) of one row's gradient; count is a constant or at most kBlock. With
// kSquares the sums of squares are in.dim behind them.
template <bool kSquares, typename T>
WORKBENCH_INLINE void SumTouched(const TouchedRows<T>& in, int64_t row, int64_t from, int count, T* out) {
  float sums[kBlock] = {0}, squares[kBlock] = {0};
  for (int32_t at = in.firsts[row]; at < in.firsts[row + 1]; ++at) {
    const int32_t example = in.examples[at];
    const T* gradient = in.gradients[example] + from;
    const float factor = in.factors[example];
    for (int c = 0; c < count; ++c) {
      const float taken = static_cast<float>(gradient[c]) * factor;
      sums[c] += taken;
      if constexpr (kSquares) squares[c] += taken * taken;
    }
  }
  for (int c = 0; c < count; ++c) out[from + c] = static_cast<T>(sums[c]);
  if constexpr (kSquares) {
    for (int c = 0; c < count; ++c) out[in.dim + from + c] = static_cast<T>(squares[c]);
  }
}

template <bool kSquares = false, typename T>
WORKBENCH_INLINE void SumGradients(const TouchedRows<T>& in, int64_t begin, int64_t end, T* out) {
  const int32_t last = in.firsts[end];
  const int64_t bytes = in.dim * static_cast<int64_t>(sizeof(T));
  for (int64_t row = begin; row < end; ++row, out += (kSquares ? 2 : 1) * in.dim) {
    for (int32_t at = in.firsts[row] + kAhead; at < in.firsts[row + 1] + kAhead && at < last; ++at) {
      Prefetch<3>(in.gradients[in.examples[at]], bytes);
    }
    int64_t c = 0;
    for (; c + kBlock <= in.dim; c += kBlock) SumTouched<kSquares>(in, row, c, kBlock, out);
    for (; c + kNarrow <= in.dim; c += kNarrow) SumTouched<kSquares>(in, row, c, kNarrow, out);
    if (c < in.dim) SumTouched<kSquares>(in, row, c, static_cast<int>(in.dim - c), out);
  }
}

}  // namespace workbench::combine

// Defines the functions of combine.h for one T.
#define WORKBENCH_COMBINE_FOR(T)                                                                 \
  template <>                                                                                    \
  WORKBENCH_CLONES void Combine<T>(const LookedUp<T>& in, int64_t begin, int64_t end, T* out) {  \
    combine::Combine(in, begin, end, out);                                                       \
  }                                                                                              \
  template <>                                                                                    \
  WORKBENCH_CLONES void SpreadGradient<T>(const LookedUp<T>& in, const T* grad, int64_t begin,   \
                                          int64_t end, T* const* out) {                          \
    combine::SpreadGradient(in, grad, begin, end, out);                                          \
  }                                                                                              \
  template <>                                                                                    \
  WORKBENCH_CLONES void GatherGradient<T>(const LookedUp<T>& in, const T* grad, int64_t begin,   \
                                          int64_t end, float* sums, T* const* out) {             \
    combine::GatherGradient(in, grad, begin, end, sums, out);                                    \
  }                                                                                              \
  template <>                                                                                    \
  WORKBENCH_CLONES void WeightGradient<T>(const LookedUp<T>& in, const T* grad, int64_t begin,   \
                                          int64_t end, float* out) {                             \
    combine::WeightGradient(in, grad, begin, end, out);                                          \
  }                                                                                              \
  template <>                                                                                    \
  WORKBENCH_CLONES void SumGradients<T>(const TouchedRows<T>& in, int64_t begin, int64_t end,      \
                                        T* out) {                                                \
    combine::SumGradients(in, begin, end, out);                                                  \
  }

#endif  // WORKBENCH_COMBINE_COMBINE_INL_H_
