# Lookups on a GPU: kernels' bodies, which tests run on the host, and the library of their own.

plain_tests(
  cuda_complaint
  cuda_gradient
  cuda_look_up
  cuda_scalars
  cuda_update)

# A minute that nobody need spend who has no GPU.
option(WORKBENCH_CUDA "Build kernels for NVIDIA GPUs, where there is an nvcc" OFF)
if(TARGET workbench AND WORKBENCH_CUDA)
  include("${CMAKE_CURRENT_LIST_DIR}/library.cmake")
endif()
