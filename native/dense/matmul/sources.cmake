# Products of two matrices.

plain_sources(
  matmul.cc)

library_sources(
  matmul_kernels.cc
  matmul_ops.cc)

plain_tests(
  matmul)
