# The library of ops, for the TensorFlow of the Python that builds it.

if(NOT Python_EXECUTABLE)
  find_package(Python 3.11 REQUIRED COMPONENTS Interpreter)
endif()

# TensorFlow's own sysconfig tells how it was compiled; the library must be compiled alike.
execute_process(
  COMMAND "${CMAKE_COMMAND}" -E env TF_CPP_MIN_LOG_LEVEL=3
    "${Python_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/find_tensorflow.py"
  OUTPUT_VARIABLE facts
  OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" facts "${facts}")
foreach(fact ${facts})
  string(REGEX MATCH "^(TENSORFLOW_[A-Z0-9_]+)=(.*)$" fact "${fact}")
  set(${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
endforeach()
message(STATUS "TensorFlow ${TENSORFLOW_VERSION} in ${TENSORFLOW_INCLUDE}: C++${TENSORFLOW_CXX_STANDARD}, "
  "C++11 ABI ${TENSORFLOW_CXX11_ABI}, aligned to ${TENSORFLOW_ALIGNMENT} bytes")

# An executor is made of parts of TensorFlow's own. Its package exports them in every version, but has
# had their headers only since 2.20.
set(WORKBENCH_HAS_EXECUTORS 0)
if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/executor" AND
   EXISTS "${TENSORFLOW_INCLUDE}/tensorflow/core/common_runtime/immutable_executor_state.h")
  set(WORKBENCH_HAS_EXECUTORS 1)
endif()

option(WORKBENCH_DENSE "Build the kernels of dense/: norms, interactions, products, text, Adam" ON)
set(WORKBENCH_HAS_DENSE 0)
if(WORKBENCH_DENSE)
  set(WORKBENCH_HAS_DENSE 1)
endif()

set(WORKBENCH_VERSION "${SKBUILD_PROJECT_VERSION}")
if(NOT WORKBENCH_VERSION)
  set(WORKBENCH_VERSION "0+unknown")
endif()

# The stamp is in the library and beside it: the file is read before the library is loaded.
string(CONCAT WORKBENCH_STAMP
  "{\"format_version\": 3, \"tensorflow\": \"${TENSORFLOW_VERSION}\", "
  "\"cxx11_abi\": ${TENSORFLOW_CXX11_ABI}, \"executors\": ${WORKBENCH_HAS_EXECUTORS}, \"dense\": ${WORKBENCH_HAS_DENSE}, "
  "\"workbench\": \"${WORKBENCH_VERSION}\"}")
file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/_workbench.json" "${WORKBENCH_STAMP}\n")
string(REPLACE "\"" "\\\"" WORKBENCH_STAMP_TEXT "${WORKBENCH_STAMP}")
set_source_files_properties(
  "${CMAKE_CURRENT_SOURCE_DIR}/capi/stamp.cc" PROPERTIES
  COMPILE_OPTIONS "-DWORKBENCH_STAMP=\"${WORKBENCH_STAMP_TEXT}\"")

add_library(workbench MODULE $<TARGET_OBJECTS:workbench_plain>)
set_target_properties(workbench PROPERTIES PREFIX "" OUTPUT_NAME _workbench SUFFIX ".so")
target_include_directories(workbench PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_include_directories(workbench SYSTEM PRIVATE "${TENSORFLOW_INCLUDE}")
# Classes differ in layout otherwise.
target_compile_definitions(workbench PRIVATE EIGEN_MAX_ALIGN_BYTES=${TENSORFLOW_ALIGNMENT})
# Before any header of Eigen, for those who use its thread pool.
target_compile_definitions(workbench PRIVATE EIGEN_USE_THREADS)
foreach(target workbench workbench_plain)
  target_compile_definitions(${target} PRIVATE _GLIBCXX_USE_CXX11_ABI=${TENSORFLOW_CXX11_ABI})
endforeach()
# Of a unit of several files every type counts as one of a header.
target_compile_options(workbench PRIVATE -Wall -Wno-sign-compare -Wno-subobject-linkage)
# Python calls the functions of capi/ alone; TensorFlow finds ops, passes and executors by their
# registration when the library is loaded.
set_target_properties(workbench workbench_plain PROPERTIES
  CXX_STANDARD ${TENSORFLOW_CXX_STANDARD}
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
if(WORKBENCH_SANITIZE STREQUAL "address")
  # Else the sanitizer gives Abseil's containers another layout than they have in TensorFlow.
  target_compile_definitions(workbench PRIVATE NDEBUG_SANITIZER)
  foreach(target workbench workbench_plain)
    target_compile_options(${target} PRIVATE -fsanitize=address -fno-omit-frame-pointer -g -O1)
  endforeach()
  target_link_options(workbench PRIVATE -fsanitize=address)
endif()
# Headers that most sources include: compiled with each of them, they took most of the time.
target_precompile_headers(workbench PRIVATE
  <tensorflow/core/common_runtime/optimization_registry.h>
  <tensorflow/core/framework/common_shape_fns.h>
  <tensorflow/core/framework/function.h>
  <tensorflow/core/framework/node_def_util.h>
  <tensorflow/core/framework/op.h>
  <tensorflow/core/framework/op_kernel.h>
  <tensorflow/core/framework/resource_mgr.h>
  <tensorflow/core/framework/shape_inference.h>
  <tensorflow/core/graph/graph.h>)
# GCC makes the symbols of cloned functions (instructions/clones.h) visible all the same.
set(symbols "${CMAKE_CURRENT_LIST_DIR}/symbols.map")
target_link_options(workbench PRIVATE "LINKER:--version-script=${symbols}")
set_target_properties(workbench PROPERTIES LINK_DEPENDS "${symbols}")
target_link_libraries(workbench PRIVATE
  Threads::Threads "${TENSORFLOW_LIBRARY}")
# TensorFlow is in the process before this library is loaded; no path of the build goes into it.
set_target_properties(workbench PROPERTIES SKIP_BUILD_RPATH ON INSTALL_RPATH "")

install(TARGETS workbench LIBRARY DESTINATION workbench)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/_workbench.json" DESTINATION workbench)
