#ifndef WORKBENCH_MATMUL_MATMUL_H_
#define WORKBENCH_MATMUL_MATMUL_H_

// Products of two matrices, either of which may lie transposed.
//
// A processor multiplies at its full speed only what lies in the order in which it is read. Both
// factors are copied into panels of that order: the second one as a whole, before all else, the first
// one block by block. Each number is summed in one order, so that any split of the work over threads
// gives the same bits.

#include <cstdint>

namespace workbench {

struct Factors {
  // a is [rows, inner], b is [inner, columns]; a transposed one lies the other way round.
  const float* a;
  const float* b;
  int64_t rows, columns, inner;
  bool transpose_a = false, transpose_b = false;
};

// Whether this processor has the instructions that the product is written for and none of the longer
// ones, for which TensorFlow brings code of its own.
bool MatMulFitsProcessor();

class MatMul {
 public:
  // All of `factors` at least 1. parts: at least how many blocks there should be, where there is
  // enough of the product to split.
  MatMul(const Factors& factors, int64_t parts);

  // How many numbers `packed` holds.
  int64_t packed_size() const;

  // Copies panels [begin, end) of b.
  int64_t panels() const;
  void Pack(int64_t begin, int64_t end, float* packed) const;

  // Sets blocks [begin, end) of c, [rows, columns], from b's copied panels.
  int64_t blocks() const { return row_blocks_ * column_blocks_; }
  void Multiply(const float* packed, int64_t begin, int64_t end, float* c) const;

 private:
  Factors factors_;
  // Blocks of c, and how many rows and panels of columns are in each but the last ones.
  int64_t row_blocks_, rows_of_block_, column_blocks_, panels_of_block_;
};

}  // namespace workbench

#endif  // WORKBENCH_MATMUL_MATMUL_H_
