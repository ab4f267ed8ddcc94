# How a feature's sources.cmake names its files, one a line, relative to itself.

set(WORKBENCH_TESTS "${CMAKE_CURRENT_SOURCE_DIR}/test")
set(WORKBENCH_THREADED executor matmul staging table threading tracing)

# The unit of a file is its folder, whatever else a build has: two files that define a name alike meet
# in every build, or in none.
function(add_sources target)
  foreach(source ${ARGN})
    set(file "${CMAKE_CURRENT_LIST_DIR}/${source}")
    target_sources(${target} PRIVATE "${file}")
    cmake_path(GET file PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
    string(REPLACE "/" "_" folder "${folder}")
    set_source_files_properties("${file}" PROPERTIES UNITY_GROUP "${folder}")
  endforeach()
endfunction()

# Algorithms without a TensorFlow header.
function(plain_sources)
  add_sources(workbench_plain ${ARGN})
endfunction()

# Ops, kernels and all else that needs TensorFlow; the build of the tests leaves it out.
function(library_sources)
  if(NOT TARGET workbench)
    return()
  endif()
  add_sources(workbench ${ARGN})
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
