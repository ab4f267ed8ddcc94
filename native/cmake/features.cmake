# How a feature's sources.cmake names its files, one a line, relative to itself.

set(WORKBENCH_TESTS "${CMAKE_CURRENT_SOURCE_DIR}/test")
set(WORKBENCH_THREADED executor matmul staging table threading tracing)

# Algorithms without a TensorFlow header.
function(plain_sources)
  foreach(source ${ARGN})
    target_sources(workbench_plain PRIVATE "${CMAKE_CURRENT_LIST_DIR}/${source}")
  endforeach()
endfunction()

# Ops, kernels and all else that needs TensorFlow; the build of the tests leaves it out.
function(library_sources)
  if(NOT TARGET workbench)
    return()
  endif()
  foreach(source ${ARGN})
    target_sources(workbench PRIVATE "${CMAKE_CURRENT_LIST_DIR}/${source}")
  endforeach()
endfunction()

# Programs of test/<feature>/: "folder/name" is folder/name_test.cc, and the test `name`.
function(plain_tests)
  if(NOT WORKBENCH_BUILD_TESTS)
    return()
  endif()
  cmake_path(GET CMAKE_CURRENT_LIST_DIR FILENAME feature)
  # The others' tests run on one thread.
  if(WORKBENCH_SANITIZE STREQUAL "thread" AND NOT feature IN_LIST WORKBENCH_THREADED)
    return()
  endif()
  foreach(test ${ARGN})
    cmake_path(GET test FILENAME name)
    add_executable(${name}_test
      "${WORKBENCH_TESTS}/${feature}/${test}_test.cc"
      "${WORKBENCH_TESTS}/support/main.cc")
    target_compile_options(${name}_test PRIVATE -Wall -Wextra)
    target_link_libraries(${name}_test PRIVATE workbench_plain)
    add_test(NAME ${name} COMMAND ${name}_test)
    set_tests_properties(${name} PROPERTIES
      TIMEOUT 300
      ENVIRONMENT "ASAN_OPTIONS=detect_leaks=1;TSAN_OPTIONS=halt_on_error=1 second_deadlock_stack=1")
  endforeach()
endfunction()

# A folder with a sources.cmake is a feature: without the folder the library lacks it.
file(GLOB features CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*/sources.cmake")
foreach(feature ${features})
  include("${feature}")
endforeach()
