#ifndef WORKBENCH_DENSE_NORM_BATCH_NORM_H_
#define WORKBENCH_DENSE_NORM_BATCH_NORM_H_

// Batch normalization of a matrix by the moments of its own columns, and its gradient.
//
// Columns are independent of each other and the rows of one are added in their order, so that any
// split of the work over threads gives the same bits.

#include <cstdint>

namespace workbench {

// x: [rows, columns], row by row; gamma, mean, variance: [columns].
struct NormedColumns {
  const float* x = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  const float* gamma = nullptr;
  float epsilon = 0;
};

// Sets mean and variance of columns [begin, end), and
//
//   y = (x - mean) gamma / sqrt(variance + epsilon) + beta.
//
//   beta, mean, variance: [columns]. y: as x.
void NormalizeColumns(const NormedColumns& in, const float* beta, int64_t begin, int64_t end,
                      float* y, float* mean, float* variance);

// Where gradients are written; x: as x, the others: [columns].
struct NormGradients {
  float* x = nullptr;
  float* gamma = nullptr;
  float* beta = nullptr;
  // The sums of the columns of x; null unless that is the gradient of a ReLU's input.
  float* bias = nullptr;
};

// Gradients of x, gamma and beta from the one of y, for columns [begin, end); mean and variance are
// those of x, and change with it.
//
// With `to.bias`, x is the result of a ReLU, and to.x the gradient of the ReLU's input: zero times
// that of x where x is not above zero, so that NaN stays. Its column sums are the gradient of a bias
// that was added to that input.
//
//   gradient: as x.
void NormalizeColumnsGradient(const NormedColumns& in, const float* mean, const float* variance,
                              const float* gradient, int64_t begin, int64_t end,
                              const NormGradients& to);

}  // namespace workbench

#endif  // WORKBENCH_DENSE_NORM_BATCH_NORM_H_
