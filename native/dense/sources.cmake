# Kernels that make dense layers and input faster than TensorFlow's: no lookup, stage or executor needs
# them. A library without has none of their ops, and plan_fusion leaves such layers to TensorFlow.

if(WORKBENCH_DENSE OR WORKBENCH_BUILD_TESTS)
  foreach(kind adam interaction matmul norm text)
    include("${CMAKE_CURRENT_LIST_DIR}/${kind}/sources.cmake")
  endforeach()
endif()
