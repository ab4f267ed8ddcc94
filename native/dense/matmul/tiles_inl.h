#ifndef WORKBENCH_DENSE_MATMUL_TILES_INL_H_
#define WORKBENCH_DENSE_MATMUL_TILES_INL_H_

// Products of panels, tile by tile of sums in registers.
//
// A Tile names its kHigh rows, the kLanes floats of a vector, its kVectors columns of those, how
// much of a product is done at once (kDeep, kRows: see MatMulKernel), and the kPanels of b that all
// rows of a block are multiplied with before the next ones.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "instructions/clones.h"
#include "instructions/vectors.h"
#include "dense/matmul/matmul.h"
#include "dense/matmul/panels_inl.h"

namespace workbench {

template <typename Tile>
constexpr int kWide = Tile::kLanes * Tile::kVectors;

// Calls `part` with how many vectors of a tile hold `columns`, as a constant.
template <typename Tile, int kFewest = 1, typename Part>
WORKBENCH_INLINE void WithVectors(int64_t columns, const Part& part) {
  if constexpr (kFewest < Tile::kVectors) {
    if (columns > kFewest * Tile::kLanes) return WithVectors<Tile, kFewest + 1>(columns, part);
  }
  part(std::integral_constant<int, kFewest>());
}

// What is done with the sums of a tile: whether they are added to what c has, and, of whole ones,
// the bias of the tile's columns, if any, and whether what is below 0 becomes 0.
struct Ending {
  bool adds;
  const float* bias;
  bool relu;
};

// Sets a tile of c from a panel of each factor.
template <typename Tile, int kVectors>
WORKBENCH_INLINE void MultiplyTile(const float* a, const float* b, int64_t inner,
                                   const Ending& ending, int64_t stride, float* c) {
  using V = typename VectorOf<Tile::kLanes>::Type;
  constexpr int kHigh = Tile::kHigh, kLanes = Tile::kLanes;
  V sums[kHigh][kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kHigh; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) sums[i][j] = V{};
    __builtin_prefetch(c + i * stride, 1);
  }
#pragma GCC unroll 4
  for (int64_t k = 0; k < inner; ++k, a += kHigh, b += kVectors * kLanes) {
    V factors[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) factors[j] = *reinterpret_cast<const V*>(b + j * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < kHigh; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) sums[i][j] += a[i] * factors[j];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kHigh; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      V* to = reinterpret_cast<V*>(c + i * stride + j * kLanes);
      V sum = sums[i][j];
      if (ending.adds) sum += *to;
      if (ending.bias != nullptr) sum += *reinterpret_cast<const V*>(ending.bias + j * kLanes);
      if (ending.relu) sum = sum < 0 ? V{} : sum;
      *to = sum;
    }
  }
}

// As MultiplyTile, of a tile that reaches beyond c.
template <typename Tile, int kVectors>
WORKBENCH_INLINE void MultiplyEdge(const float* a, const float* b, int64_t inner,
                                   const Ending& ending, int64_t stride, int64_t rows,
                                   int64_t columns, float* c) {
  constexpr int kColumns = kVectors * Tile::kLanes;
  float tile[Tile::kHigh * kColumns];
  MultiplyTile<Tile, kVectors>(a, b, inner, {}, kColumns, tile);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      float sum = tile[i * kColumns + j];
      if (ending.adds) sum += c[i * stride + j];
      if (ending.bias != nullptr) sum += ending.bias[j];
      c[i * stride + j] = ending.relu && sum < 0 ? 0 : sum;
    }
  }
}

template <typename Tile>
WORKBENCH_INLINE void PackPanels(const Product& product, int64_t begin, int64_t end,
                                 float* packed) {
  const int64_t last = std::min(end * kWide<Tile>, product.columns);
  int64_t column = begin * kWide<Tile>;
  if (!product.transpose_b) {
    const int64_t lanes = (last - column) / kWide<Tile> * kWide<Tile>;
    PackColumns<kWide<Tile>>(product.b + column, product.columns, lanes, product.inner,
                             packed + column * product.inner);
    column += lanes;
  }
  for (; column < last; column += kWide<Tile>) {
    const int64_t lanes = std::min<int64_t>(kWide<Tile>, last - column);
    float* to = packed + column * product.inner;
    WithVectors<Tile>(lanes, [&](auto vectors) WORKBENCH_INLINED {
      constexpr int kWidth = vectors * Tile::kLanes;
      if (product.transpose_b) {
        PackRows<kWidth, Tile::kLanes>(product.b + column * product.inner, product.inner, lanes,
                                       product.inner, to);
      } else {
        PackColumns<kWidth>(product.b + column, product.columns, lanes, product.inner, to);
      }
    });
  }
}

// Numbers that the panels of b take, behind which those of an a that lies transposed are.
template <typename Tile>
int64_t PanelsSize(const Product& product) {
  constexpr int64_t kLanes = Tile::kLanes;
  return (product.columns + kLanes - 1) / kLanes * kLanes * product.inner;
}

template <typename Tile>
constexpr int64_t kBand = Tile::kHigh * kPanelsAtOnce<Tile::kHigh>;

template <typename Tile>
WORKBENCH_INLINE void PackBands(const Product& product, int64_t begin, int64_t end,
                                float* packed) {
  float* const panels = packed + PanelsSize<Tile>(product);
  const int64_t first = begin * kBand<Tile>, last = std::min(end * kBand<Tile>, product.rows);
  PackColumns<Tile::kHigh>(product.a + first, product.rows, last - first, product.inner,
                           panels + first * product.inner);
}

// A block's panels of a: of each the columns that are multiplied, the next one `stride` behind it.
struct PanelsOfBlock {
  const float* first;
  int64_t stride;
};

// Those of [first, first + inner), which are copied to `own` where `packed` has them not.
template <typename Tile>
WORKBENCH_INLINE PanelsOfBlock PackBlock(const Product& product, const ProductBlock& block,
                                         int64_t first, int64_t inner, const float* packed,
                                         float* own) {
  constexpr int kHigh = Tile::kHigh;
  constexpr int kSquare = kHigh % kLanes == 0 ? kLanes : 0;
  if (product.transpose_a) {
    const float* panels = packed + PanelsSize<Tile>(product) + block.row * product.inner;
    return {panels + first * kHigh, kHigh * product.inner};
  }
  for (int64_t row = 0; row < block.rows; row += kHigh) {
    const int64_t lanes = std::min<int64_t>(kHigh, block.rows - row);
    const float* from = product.a + (block.row + row) * product.inner + first;
    PackRows<kHigh, kSquare>(from, product.inner, lanes, inner, own + row * inner);
  }
  return {own, kHigh * inner};
}

template <typename Tile>
WORKBENCH_INLINE void MultiplyBlock(const Product& product, const ProductBlock& block,
                                    int64_t first, int64_t inner, const float* packed, float* own,
                                    float* c) {
  constexpr int kHigh = Tile::kHigh;
  const PanelsOfBlock of_a = PackBlock<Tile>(product, block, first, inner, packed, own);
  const bool whole = first + inner == product.inner;
  const int64_t last = block.panel + block.panels;
  for (int64_t panels = block.panel; panels < last; panels += Tile::kPanels) {
    const int64_t end = std::min<int64_t>(panels + Tile::kPanels, last);
    for (int64_t row = 0; row < block.rows; row += kHigh) {
      const int64_t rows = std::min<int64_t>(kHigh, block.rows - row);
      const float* a = of_a.first + row / kHigh * of_a.stride;
      for (int64_t panel = panels; panel < end; ++panel) {
        const int64_t column = panel * kWide<Tile>;
        const int64_t columns = std::min<int64_t>(kWide<Tile>, product.columns - column);
        float* to = c + (block.row + row) * product.columns + column;
        WithVectors<Tile>(columns, [&](auto vectors) WORKBENCH_INLINED {
          constexpr int kColumns = vectors * Tile::kLanes;
          const float* b = packed + column * product.inner + first * kColumns;
          const float* bias = whole && product.bias != nullptr ? product.bias + column : nullptr;
          const Ending ending{first > 0, bias, whole && product.relu};
          if (rows == kHigh && columns == kColumns) {
            MultiplyTile<Tile, vectors>(a, b, inner, ending, product.columns, to);
          } else {
            MultiplyEdge<Tile, vectors>(a, b, inner, ending, product.columns, rows, columns,
                                        to);
          }
        });
      }
    }
  }
}

}  // namespace workbench

#endif  // WORKBENCH_DENSE_MATMUL_TILES_INL_H_
