#include "matmul/matmul.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "instructions/clones.h"
#include "instructions/prefetch.h"
#include "instructions/vectors.h"

// Numbers are multiplied and added in one instruction.
#define WORKBENCH_MATMUL_CLONES WORKBENCH_CLONES_FOR("fma")

namespace workbench {
namespace {

// Rows and columns of sums that fit in registers.
constexpr int kHigh = 6;
constexpr int kVectors = 2;
constexpr int kWide = kVectors * kLanes;
// Of `inner`, what a panel of b holds in the first cache; with so many rows, what a block of a holds
// in the second.
constexpr int64_t kDeep = 256;
constexpr int64_t kRows = 192;
constexpr int kFloatsOfLine = kCacheLine / sizeof(float);

int64_t Parts(int64_t count, int64_t size) { return (count + size - 1) / size; }

// Of equal parts that are at most `most`, the size.
int64_t EvenSize(int64_t count, int64_t most) { return Parts(count, Parts(count, most)); }

// Copies a panel of `lanes` rows of a matrix, lane by lane for each column, and zeros up to kWidth.
// A row begins `stride` behind the one before. A cache line of each is copied at a time: where rows
// lie a power of two apart, there is no room in the cache for more.
template <int kWidth>
WORKBENCH_INLINE void PackRows(const float* from, int64_t stride, int64_t lanes, int64_t columns,
                               float* to) {
  int64_t column = 0;
  if (lanes == kWidth) {
    for (; column + kFloatsOfLine <= columns; column += kFloatsOfLine) {
      for (int lane = 0; lane < kWidth; ++lane) {
        const float* line = from + lane * stride + column;
        float* out = to + column * kWidth + lane;
        for (int i = 0; i < kFloatsOfLine; ++i) out[i * kWidth] = line[i];
      }
    }
  }
  for (; column < columns; ++column) {
    for (int lane = 0; lane < kWidth; ++lane) {
      to[column * kWidth + lane] = lane < lanes ? from[lane * stride + column] : 0.0f;
    }
  }
}

// As PackRows, of any number of lanes, in a matrix that lies transposed: they lie one behind the other.
// A row gives some panels' lanes at once, so that whole cache lines of it are read.
template <int kWidth>
WORKBENCH_INLINE void PackColumns(const float* from, int64_t stride, int64_t lanes, int64_t rows,
                                  float* to) {
  constexpr int kPanels = 4 * kFloatsOfLine / kWidth;
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

// Sets a tile of c, or adds to it, from a panel of each factor.
WORKBENCH_INLINE void MultiplyTile(const float* a, const float* b, int64_t inner, bool adds,
                                   int64_t stride, float* c) {
  Vector sums[kHigh][kVectors];
#pragma GCC unroll 6
  for (int i = 0; i < kHigh; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) sums[i][j] = Vector{};
    __builtin_prefetch(c + i * stride, 1);
  }
#pragma GCC unroll 4
  for (int64_t k = 0; k < inner; ++k, a += kHigh, b += kWide) {
    Vector factors[kVectors];
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      factors[j] = *reinterpret_cast<const Vector*>(b + j * kLanes);
    }
#pragma GCC unroll 6
    for (int i = 0; i < kHigh; ++i) {
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) sums[i][j] += a[i] * factors[j];
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < kHigh; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      Vector* to = reinterpret_cast<Vector*>(c + i * stride + j * kLanes);
      *to = adds ? *to + sums[i][j] : sums[i][j];
    }
  }
}

// As MultiplyTile, of a tile that reaches beyond c.
WORKBENCH_INLINE void MultiplyEdge(const float* a, const float* b, int64_t inner, bool adds,
                                   int64_t stride, int64_t rows, int64_t columns, float* c) {
  float tile[kHigh * kWide];
  MultiplyTile(a, b, inner, false, kWide, tile);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const float sum = tile[i * kWide + j];
      c[i * stride + j] = adds ? c[i * stride + j] + sum : sum;
    }
  }
}

struct Block {
  int64_t row, rows, panel, panels;
};

WORKBENCH_MATMUL_CLONES void PackPanels(const Factors& factors, int64_t begin, int64_t end,
                                        float* packed) {
  const int64_t last = std::min(end * kWide, factors.columns);
  if (!factors.transpose_b) {
    const int64_t first = begin * kWide;
    PackColumns<kWide>(factors.b + first, factors.columns, last - first, factors.inner,
                       packed + first * factors.inner);
    return;
  }
  for (int64_t column = begin * kWide; column < last; column += kWide) {
    const int64_t lanes = std::min<int64_t>(kWide, last - column), at = column * factors.inner;
    PackRows<kWide>(factors.b + at, factors.inner, lanes, factors.inner, packed + at);
  }
}

// Copies a block's rows of [first, first + inner).
WORKBENCH_INLINE void PackBlock(const Factors& factors, const Block& block, int64_t first,
                                int64_t inner, float* own) {
  if (factors.transpose_a) {
    PackColumns<kHigh>(factors.a + first * factors.rows + block.row, factors.rows, block.rows, inner,
                       own);
    return;
  }
  for (int64_t row = 0; row < block.rows; row += kHigh) {
    const int64_t lanes = std::min<int64_t>(kHigh, block.rows - row);
    PackRows<kHigh>(factors.a + (block.row + row) * factors.inner + first, factors.inner, lanes,
                    inner, own + row * inner);
  }
}

// Multiplies [first, first + inner) of what is between the factors. `own` has room for a's panels.
WORKBENCH_MATMUL_CLONES void MultiplyBlock(const Factors& factors, const Block& block, int64_t first,
                                           int64_t inner, const float* packed, float* own, float* c) {
  PackBlock(factors, block, first, inner, own);
  for (int64_t panel = block.panel; panel < block.panel + block.panels; ++panel) {
    const int64_t column = panel * kWide;
    const int64_t columns = std::min<int64_t>(kWide, factors.columns - column);
    const float* b = packed + column * factors.inner + first * kWide;
    for (int64_t row = 0; row < block.rows; row += kHigh) {
      const int64_t rows = std::min<int64_t>(kHigh, block.rows - row);
      const float* a = own + row * inner;
      float* to = c + (block.row + row) * factors.columns + column;
      if (rows == kHigh && columns == kWide) {
        MultiplyTile(a, b, inner, first > 0, factors.columns, to);
      } else {
        MultiplyEdge(a, b, inner, first > 0, factors.columns, rows, columns, to);
      }
    }
  }
}

}  // namespace

bool MatMulFitsProcessor() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         !__builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}

MatMul::MatMul(const Factors& factors, int64_t parts) : factors_(factors) {
  const int64_t tiles = Parts(factors.rows, kHigh);
  row_blocks_ = Parts(factors.rows, kRows);
  // Equal blocks, as many for each thread.
  if (tiles >= parts) row_blocks_ = Parts(row_blocks_, parts) * parts;
  rows_of_block_ = Parts(tiles, std::min(row_blocks_, tiles)) * kHigh;
  row_blocks_ = Parts(factors.rows, rows_of_block_);
  panels_of_block_ = Parts(panels(), std::min(panels(), Parts(parts, row_blocks_)));
  column_blocks_ = Parts(panels(), panels_of_block_);
}

int64_t MatMul::panels() const { return Parts(factors_.columns, kWide); }

int64_t MatMul::packed_size() const { return panels() * kWide * factors_.inner; }

void MatMul::Pack(int64_t begin, int64_t end, float* packed) const {
  PackPanels(factors_, begin, end, packed);
}

void MatMul::Multiply(const float* packed, int64_t begin, int64_t end, float* c) const {
  const int64_t deep = EvenSize(factors_.inner, kDeep);
  thread_local std::vector<float> own;
  own.resize(std::max<size_t>(own.size(), kRows * kDeep));
  for (int64_t number = begin; number < end; ++number) {
    Block block;
    block.row = number / column_blocks_ * rows_of_block_;
    block.rows = std::min(rows_of_block_, factors_.rows - block.row);
    block.panel = number % column_blocks_ * panels_of_block_;
    block.panels = std::min(panels_of_block_, panels() - block.panel);
    for (int64_t first = 0; first < factors_.inner; first += deep) {
      const int64_t inner = std::min(deep, factors_.inner - first);
      MultiplyBlock(factors_, block, first, inner, packed, own.data(), c);
    }
  }
}

}  // namespace workbench
