# Batch normalization by a batch's own moments, and its gradient.

plain_sources(
  batch_norm.cc)

library_sources(
  batch_norm_kernels.cc
  batch_norm_ops.cc)

plain_tests(
  batch_norm)

# A multiplication fused into an addition rounds once: sums would differ between processors.
set_source_files_properties(
  ${CMAKE_CURRENT_LIST_DIR}/batch_norm.cc
  PROPERTIES COMPILE_OPTIONS "-ffp-contract=off")
