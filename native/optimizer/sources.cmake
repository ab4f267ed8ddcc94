# Updates of rows of variables by sparse gradients.

plain_sources(
  touched_updates.cc
  row_updates.cc
  update_rules.cc)

library_sources(
  row_update_kernels.cc
  row_update_ops.cc
  rule_inputs.cc)

plain_tests(
  row_updates)

# The compiler vectorizes a loop with a square root only where errno is not wanted. Products are
# rounded before they are added, as by the ops of a graph.
set_source_files_properties(
  ${CMAKE_CURRENT_LIST_DIR}/touched_updates.cc
  ${CMAKE_CURRENT_LIST_DIR}/update_rules.cc
  PROPERTIES COMPILE_OPTIONS "-fno-math-errno;-ffp-contract=off")
