# The GPU library: kernels of their own for ops of the main library. It needs nothing of that one's
# build, so that it can be built alone.

include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(STATUS "No nvcc: the library goes without lookups on a GPU")
  return()
endif()
# Each architecture takes some twenty seconds: this machine's own, or PTX, which the driver of any GPU
# since Turing translates when it is first used; from Ampere on rows come without a lane's waiting.
# CUDAARCHS in the environment names others.
if(DEFINED ENV{CUDAARCHS})
  # CMake reads it in a build's first configuration alone.
  set(CMAKE_CUDA_ARCHITECTURES "$ENV{CUDAARCHS}")
elseif(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  execute_process(COMMAND nvidia-smi -L RESULT_VARIABLE found OUTPUT_QUIET ERROR_QUIET)
  if(found EQUAL 0)
    set(CMAKE_CUDA_ARCHITECTURES native)
  else()
    set(CMAKE_CUDA_ARCHITECTURES 75-virtual 80-virtual)
  endif()
endif()
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
message(STATUS "nvcc ${CMAKE_CUDA_COMPILER_VERSION}: lookups on a GPU, for ${CMAKE_CUDA_ARCHITECTURES}")

add_library(workbench_cuda MODULE
  # What kernels for the CPU read of attributes and rules.
  ${CMAKE_CURRENT_SOURCE_DIR}/combine/combine_calls.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/lookup/grouped/feature_rows.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/lookup/grouped/grouped_inputs.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/lookup/id_checks.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/lookup/row_ids.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/optimizer/touched_updates.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/optimizer/rule_inputs.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/optimizer/update_rules.cc
  ${CMAKE_CURRENT_LIST_DIR}/rows/apply.cu
  ${CMAKE_CURRENT_LIST_DIR}/ops/apply_kernels.cc
  ${CMAKE_CURRENT_LIST_DIR}/device/cuda_device.cu
  ${CMAKE_CURRENT_LIST_DIR}/ops/device_context.cc
  ${CMAKE_CURRENT_LIST_DIR}/ops/device_tables.cc
  ${CMAKE_CURRENT_LIST_DIR}/rows/gradient.cu
  ${CMAKE_CURRENT_LIST_DIR}/ops/grouped_call.cc
  ${CMAKE_CURRENT_LIST_DIR}/ops/grouped_kernels.cc
  ${CMAKE_CURRENT_LIST_DIR}/ops/local_kernels.cc
  ${CMAKE_CURRENT_LIST_DIR}/rows/look_up/look_up.cu)
set_target_properties(workbench_cuda PROPERTIES
  UNITY_BUILD OFF
  PREFIX "" OUTPUT_NAME _workbench_cuda SUFFIX ".so"
  CUDA_RUNTIME_LIBRARY Static
  CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
  SKIP_BUILD_RPATH ON INSTALL_RPATH "")
target_include_directories(workbench_cuda PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_include_directories(workbench_cuda SYSTEM PRIVATE
  "$<$<COMPILE_LANGUAGE:CXX>:${TENSORFLOW_INCLUDE}>")
target_compile_definitions(workbench_cuda PRIVATE
  EIGEN_MAX_ALIGN_BYTES=${TENSORFLOW_ALIGNMENT} _GLIBCXX_USE_CXX11_ABI=${TENSORFLOW_CXX11_ABI})
# As on a CPU a multiplication and an addition round twice, so that results are the same.
target_compile_options(workbench_cuda PRIVATE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wno-sign-compare> $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false>)
# CUDA's runtime stands before TensorFlow, which has one too, of another version; none of it may be
# found from outside.
find_package(CUDAToolkit REQUIRED)
target_link_libraries(workbench_cuda PRIVATE
  CUDA::cudart_static Threads::Threads "${TENSORFLOW_LIBRARY}")
target_link_options(workbench_cuda PRIVATE -Wl,--exclude-libs,ALL)

install(TARGETS workbench_cuda LIBRARY DESTINATION workbench COMPONENT cuda)
