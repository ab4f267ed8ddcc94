// What kernels of matrix products are made for.

#include "dense/matmul/matmul.h"

#include "capi/export.h"
#include "tensorflow/core/util/util.h"

WORKBENCH_EXPORT int workbench_matmul_fits(int transposed) {
  return workbench::MatMulFitsProcessor(tensorflow::IsMKLEnabled(), transposed != 0);
}
