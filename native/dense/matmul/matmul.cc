#include "dense/matmul/matmul.h"

#include <algorithm>

#include "instructions/clones.h"
#include "dense/matmul/tiles_inl.h"

namespace workbench {
namespace {

// A tile's loops, compiled for what `attributes` name: numbers are multiplied and added in one
// instruction there.
#define WORKBENCH_MATMUL_KERNEL(name, Tile, attributes)                                           \
  attributes void Pack##Tile(const Product& product, int64_t begin, int64_t end, float* packed) { \
    PackPanels<Tile>(product, begin, end, packed);                                                \
  }                                                                                               \
  attributes void PackA##Tile(const Product& product, int64_t begin, int64_t end,                 \
                              float* packed) {                                                    \
    PackBands<Tile>(product, begin, end, packed);                                                 \
  }                                                                                               \
  attributes void Multiply##Tile(const Product& product, const ProductBlock& block,               \
                                 int64_t first, int64_t inner, const float* packed, float* own,   \
                                 float* c) {                                                      \
    MultiplyBlock<Tile>(product, block, first, inner, packed, own, c);                            \
  }                                                                                               \
  constexpr MatMulKernel name = {Tile::kHigh,  kWide<Tile>, Tile::kLanes, Tile::kDeep,            \
                                 Tile::kRows,  kBand<Tile>, Pack##Tile,   PackA##Tile,            \
                                 Multiply##Tile}

struct ShortTile {
  static constexpr int kHigh = 6, kLanes = 8, kVectors = 2;
  // A panel of b in the first cache, a block of a in the second.
  static constexpr int64_t kDeep = 256, kRows = 192, kPanels = 5;
};
WORKBENCH_MATMUL_KERNEL(kShort, ShortTile, WORKBENCH_CLONES_FOR("fma"));

#if defined(__x86_64__)

struct LongTile {
  static constexpr int kHigh = 8, kLanes = 16, kVectors = 3;
  // A panel of a in the first cache, some of b's and a block of a in the second.
  static constexpr int64_t kDeep = 512, kRows = 128, kPanels = 5;
};
WORKBENCH_MATMUL_KERNEL(kLong, LongTile, __attribute__((target("avx512f"))));

bool HasAvx512() { return __builtin_cpu_supports("avx512f"); }

#endif

#undef WORKBENCH_MATMUL_KERNEL

int64_t Parts(int64_t count, int64_t size) { return (count + size - 1) / size; }

// Of equal parts that are at most `most`, the size.
int64_t EvenSize(int64_t count, int64_t most) {
  return Parts(count, std::max<int64_t>(1, Parts(count, most)));
}

}  // namespace

const std::vector<const MatMulKernel*>& MatMulKernels() {
  static const auto& kernels = *new std::vector<const MatMulKernel*>([] {
    std::vector<const MatMulKernel*> made;
#if defined(__x86_64__)
    if (HasAvx512()) made.push_back(&kLong);
#endif
    made.push_back(&kShort);
    return made;
  }());
  return kernels;
}

bool MatMulFitsProcessor(bool by_onednn, bool transposed) {
#if defined(__x86_64__)
  if (HasAvx512()) return __builtin_cpu_is("amd");
  if (by_onednn || !transposed) return false;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

MatMul::MatMul(const Product& product, int64_t parts, const MatMulKernel& kernel)
    : product_(product), kernel_(kernel) {
  const int64_t tiles = Parts(product.rows, kernel.high);
  row_blocks_ = Parts(product.rows, kernel.rows);
  // Equal blocks, as many for each thread. Blocks of the same rows would each copy these.
  if (!product.transpose_a && tiles >= parts) row_blocks_ = Parts(row_blocks_, parts) * parts;
  rows_of_block_ = Parts(tiles, std::min(row_blocks_, tiles)) * kernel.high;
  row_blocks_ = Parts(product.rows, rows_of_block_);
  const int64_t beside = product.transpose_a ? Parts(parts, row_blocks_) : parts / row_blocks_;
  panels_of_block_ = Parts(panels(), std::clamp<int64_t>(beside, 1, panels()));
  column_blocks_ = Parts(panels(), panels_of_block_);
}

int64_t MatMul::panels() const { return Parts(product_.columns, kernel_.wide); }

int64_t MatMul::bands() const {
  return product_.transpose_a ? Parts(product_.rows, kernel_.band) : 0;
}

int64_t MatMul::packed_size() const {
  const int64_t columns = Parts(product_.columns, kernel_.lanes) * kernel_.lanes;
  const int64_t rows = product_.transpose_a ? Parts(product_.rows, kernel_.high) * kernel_.high : 0;
  return (columns + rows) * product_.inner;
}

void MatMul::Pack(int64_t begin, int64_t end, float* packed) const {
  const int64_t middle = std::clamp(panels(), begin, end);
  if (begin < middle) kernel_.pack(product_, begin, middle, packed);
  if (middle < end) kernel_.pack_a(product_, middle - panels(), end - panels(), packed);
}

void MatMul::Multiply(const float* packed, int64_t begin, int64_t end, float* c) const {
  const int64_t deep = EvenSize(product_.inner, kernel_.deep);
  thread_local std::vector<float> own;
  own.resize(std::max<size_t>(own.size(), kernel_.rows * kernel_.deep));
  for (int64_t number = begin; number < end; ++number) {
    ProductBlock block;
    block.row = number / column_blocks_ * rows_of_block_;
    block.rows = std::min(rows_of_block_, product_.rows - block.row);
    block.panel = number % column_blocks_ * panels_of_block_;
    block.panels = std::min(panels_of_block_, panels() - block.panel);
    int64_t first = 0;
    do {
      const int64_t inner = std::min(deep, product_.inner - first);
      kernel_.multiply(product_, block, first, inner, packed, own.data(), c);
      first += deep;
    } while (first < product_.inner);
  }
}

}  // namespace workbench
