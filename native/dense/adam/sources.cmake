# Adam's update of whole variables.

plain_sources(
  adam.cc)

library_sources(
  adam_kernels.cc
  adam_ops.cc)

# The compiler vectorizes a loop with a square root only where errno is not wanted. Products are
# rounded before they are added, as by the ops of a graph.
set_source_files_properties(
  ${CMAKE_CURRENT_LIST_DIR}/adam.cc
  PROPERTIES COMPILE_OPTIONS "-fno-math-errno;-ffp-contract=off")
