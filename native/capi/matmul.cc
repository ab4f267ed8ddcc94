// What kernels of matrix products are made for.

#include "matmul/matmul.h"

#include "capi/export.h"

WORKBENCH_EXPORT int workbench_matmul_fits_processor() { return workbench::MatMulFitsProcessor(); }
