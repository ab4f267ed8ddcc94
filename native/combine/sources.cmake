# Fused lookups: the rows of each example combined, and their gradients.

plain_sources(
  combine.cc
  usual_widths.cc)

library_sources(
  combine_calls.cc
  combine_half.cc
  combine_kernels.cc
  combine_ops.cc
  row_ranges.cc)

plain_tests(
  touched_rows
  combine)

# A multiplication fused into an addition rounds once: sums would differ between processors.
set_source_files_properties(
  ${CMAKE_CURRENT_LIST_DIR}/combine.cc
  ${CMAKE_CURRENT_LIST_DIR}/combine_half.cc
  ${CMAKE_CURRENT_LIST_DIR}/usual_widths.cc
  PROPERTIES COMPILE_OPTIONS "-ffp-contract=off")
