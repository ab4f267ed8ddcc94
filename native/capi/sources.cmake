# The C functions that workbench/_native.py lists, a file for each feature that has some.

library_sources(
  layouts.cc
  stamp.cc)

if(WORKBENCH_HAS_EXECUTORS)
  library_sources(executors.cc intra_op_pools.cc)
endif()
if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/tracing")
  library_sources(tracing.cc)
endif()
if(WORKBENCH_DENSE)
  library_sources(matmul.cc)
endif()
