# Batch normalization by a batch's own moments, and its gradient.

plain_sources(
  batch_norm.cc)

library_sources(
  batch_norm_kernels.cc
  batch_norm_ops.cc)

plain_tests(
  batch_norm)

# A multiplication fused into an addition rounds once: sums would differ between processors. With traps
# that nobody sets, loops that choose by a comparison, as a ReLU's gradient does, are not vectorized.
set_source_files_properties(
  ${CMAKE_CURRENT_LIST_DIR}/batch_norm.cc
  PROPERTIES COMPILE_OPTIONS "-ffp-contract=off;-fno-trapping-math")
