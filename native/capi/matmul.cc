// What kernels of matrix products are made for.

#include "matmul/matmul.h"

#include "capi/export.h"
#include "tensorflow/core/util/util.h"

// oneDNN, where TensorFlow has it do products, brings code of its own for them.
WORKBENCH_EXPORT int workbench_matmul_fits() {
  return workbench::MatMulFitsProcessor() && !tensorflow::IsMKLEnabled();
}
