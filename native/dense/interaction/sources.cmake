# Products of pairs of an example's vectors, one by one or summed, and their gradients.

plain_sources(
  dot_interaction.cc
  fm_interaction.cc)

library_sources(
  dot_interaction_kernels.cc
  dot_interaction_ops.cc
  fm_interaction_kernels.cc
  fm_interaction_ops.cc)

plain_tests(
  dot_interaction
  fm_interaction)

# A multiplication fused into an addition rounds once: sums would differ between processors.
set_source_files_properties(
  ${CMAKE_CURRENT_LIST_DIR}/dot_interaction.cc
  ${CMAKE_CURRENT_LIST_DIR}/fm_interaction.cc
  PROPERTIES COMPILE_OPTIONS "-ffp-contract=off")
