#ifndef WORKBENCH_DENSE_MATMUL_MATMUL_H_
#define WORKBENCH_DENSE_MATMUL_MATMUL_H_

// Products of two matrices, either of which may lie transposed.
//
// A processor multiplies at its full speed only what lies in the order in which it is read. Both
// factors are copied into panels of that order: the second one as a whole, before all else, and so
// is a first one that lies transposed, of which a block is a few numbers of each line; else the
// first one is block by block. Each number is summed in one order, so that any split of the work
// over threads gives the same bits.

#include <cstdint>
#include <vector>

namespace workbench {

struct Product {
  // a is [rows, inner], b is [inner, columns]; a transposed one lies the other way round.
  const float* a;
  const float* b;
  int64_t rows, columns, inner;
  bool transpose_a = false, transpose_b = false;
  // [columns], is added to each row; null for none.
  const float* bias = nullptr;
  // Whether what is below 0 becomes 0.
  bool relu = false;
};

// Rows and columns of c from `row` and panel `panel` of b on.
struct ProductBlock {
  int64_t row, rows, panel, panels;
};

// How an instruction set multiplies.
struct MatMulKernel {
  // Rows and columns of sums that fit in registers: lanes of a panel of a, and of b. The last panel
  // of b has what is left of its columns, rounded up to vectors of `lanes`.
  int64_t high, wide, lanes;
  // Of `inner`, what is multiplied before all that follows it is, and most rows of a block: panels
  // of so much lie in the first two caches.
  int64_t deep, rows;

  // Copies panels [begin, end) of b, and bands [begin, end) of an a that lies transposed, each of
  // `band` of its rows.
  int64_t band;
  void (*pack)(const Product& product, int64_t begin, int64_t end, float* packed);
  void (*pack_a)(const Product& product, int64_t begin, int64_t end, float* packed);
  // Multiplies [first, first + inner) of what is between the factors. `own` has room for a's
  // panels, where `packed` has them not.
  void (*multiply)(const Product& product, const ProductBlock& block, int64_t first, int64_t inner,
                   const float* packed, float* own, float* c);
};

// Those that this processor can run, the fastest one first.
const std::vector<const MatMulKernel*>& MatMulKernels();

// Whether the fastest one is faster than what TensorFlow has, which may be oneDNN.
//
//   transposed: whether a factor is; TensorFlow's own code is slow there.
bool MatMulFitsProcessor(bool by_onednn, bool transposed);

class MatMul {
 public:
  // Rows and columns are at least 1. parts: at least how many blocks there should be, where there
  // is enough of the product to split.
  MatMul(const Product& product, int64_t parts, const MatMulKernel& kernel = *MatMulKernels()[0]);

  // How many numbers `packed` holds.
  int64_t packed_size() const;

  // Does [begin, end) of the copies that come before all else.
  int64_t copies() const { return panels() + bands(); }
  void Pack(int64_t begin, int64_t end, float* packed) const;

  // Sets blocks [begin, end) of c, [rows, columns], once all is copied.
  int64_t blocks() const { return row_blocks_ * column_blocks_; }
  void Multiply(const float* packed, int64_t begin, int64_t end, float* c) const;

 private:
  int64_t panels() const;
  int64_t bands() const;

  Product product_;
  const MatMulKernel& kernel_;
  // Blocks of c, and how many rows and panels of columns are in each but the last ones.
  int64_t row_blocks_, rows_of_block_, column_blocks_, panels_of_block_;
};

}  // namespace workbench

#endif  // WORKBENCH_DENSE_MATMUL_MATMUL_H_
