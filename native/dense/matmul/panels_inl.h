#ifndef WORKBENCH_DENSE_MATMUL_PANELS_INL_H_
#define WORKBENCH_DENSE_MATMUL_PANELS_INL_H_

// Copies of a matrix in the order in which a product reads it: panels of some of its rows, or of
// its columns, as lanes. A panel lies column by column (row by row), the lanes of each together.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "instructions/clones.h"
#include "instructions/prefetch.h"
#include "instructions/vectors.h"

namespace workbench {

constexpr int kFloatsOfLine = kCacheLine / sizeof(float);

// Of two rows of a square that lie kApart from each other, what they exchange: the quarters that
// are on the wrong side.
template <int kApart, typename V, int... kLane>
WORKBENCH_INLINE void ExchangeQuarters(V& upper, V& lower,
                                       std::integer_sequence<int, kLane...>) {
  constexpr int kCount = sizeof...(kLane);
  const V first = upper, second = lower;
  upper = __builtin_shufflevector(first, second,
                                  (kLane & kApart ? kCount + kLane - kApart : kLane)...);
  lower = __builtin_shufflevector(first, second,
                                  (kLane & kApart ? kCount + kLane : kLane + kApart)...);
}

template <int kCount, int kApart = kCount / 2>
WORKBENCH_INLINE void TransposeSquare(typename VectorOf<kCount>::Type* rows) {
  using Lanes = std::make_integer_sequence<int, kCount>;
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) {
    if (!(i & kApart)) ExchangeQuarters<kApart>(rows[i], rows[i + kApart], Lanes());
  }
  if constexpr (kApart > 1) TransposeSquare<kCount, kApart / 2>(rows);
}

// A square of kCount rows that lie `stride` apart, to columns that lie kWidth apart.
template <int kCount, int kWidth>
WORKBENCH_INLINE void PackSquare(const float* from, int64_t stride, float* to) {
  using V = typename VectorOf<kCount>::Type;
  V rows[kCount];
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) rows[i] = *reinterpret_cast<const V*>(from + i * stride);
  TransposeSquare<kCount>(rows);
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) *reinterpret_cast<V*>(to + i * kWidth) = rows[i];
}

// Copies a panel of `lanes` rows of a matrix, and zeros up to kWidth. A row begins `stride` behind
// the one before. A cache line of each is copied at a time: where rows lie a power of two apart,
// there is no room in the cache for more.
//
//   kLanes: of the squares that are turned in registers; 0 for none.
template <int kWidth, int kLanes>
WORKBENCH_INLINE void PackRows(const float* from, int64_t stride, int64_t lanes, int64_t columns,
                               float* to) {
  int64_t column = 0;
  for (; column + kFloatsOfLine <= columns; column += kFloatsOfLine) {
    int64_t lane = 0;
    if constexpr (kLanes > 0) {
      for (; lane + kLanes <= lanes; lane += kLanes) {
        for (int i = 0; i < kFloatsOfLine; i += kLanes) {
          PackSquare<kLanes, kWidth>(from + lane * stride + column + i, stride,
                                     to + (column + i) * kWidth + lane);
        }
      }
    }
    for (; lane < kWidth; ++lane) {
      const float* line = from + lane * stride + column;
      float* out = to + column * kWidth + lane;
      for (int i = 0; i < kFloatsOfLine; ++i) out[i * kWidth] = lane < lanes ? line[i] : 0.0f;
    }
  }
  for (; column < columns; ++column) {
    for (int lane = 0; lane < kWidth; ++lane) {
      to[column * kWidth + lane] = lane < lanes ? from[lane * stride + column] : 0.0f;
    }
  }
}

// Of a matrix that lies transposed, of how many panels a row gives the lanes at once, so that whole
// cache lines of it are read.
template <int kWidth>
constexpr int kPanelsAtOnce = std::max(1, 4 * kFloatsOfLine / kWidth);

// As PackRows, of any number of lanes, in a matrix that lies transposed: they lie one behind the
// other.
template <int kWidth>
WORKBENCH_INLINE void PackColumns(const float* from, int64_t stride, int64_t lanes, int64_t rows,
                                  float* to) {
  constexpr int kPanels = kPanelsAtOnce<kWidth>;
  int64_t lane = 0;
  for (; lane + kPanels * kWidth <= lanes; lane += kPanels * kWidth) {
    for (int64_t row = 0; row < rows; ++row) {
      const float* line = from + row * stride + lane;
      float* out = to + lane * rows + row * kWidth;
      for (int panel = 0; panel < kPanels; ++panel) {
        std::memcpy(out + panel * kWidth * rows, line + panel * kWidth, kWidth * sizeof(float));
      }
    }
  }
  for (; lane < lanes; lane += kWidth) {
    const int64_t own = std::min<int64_t>(kWidth, lanes - lane);
    for (int64_t row = 0; row < rows; ++row) {
      const float* line = from + row * stride + lane;
      float* out = to + lane * rows + row * kWidth;
      for (int64_t i = 0; i < own; ++i) out[i] = line[i];
      for (int64_t i = own; i < kWidth; ++i) out[i] = 0.0f;
    }
  }
}

}  // namespace workbench

#endif  // WORKBENCH_DENSE_MATMUL_PANELS_INL_H_
