# Tests of the plain parts, optionally under a sanitizer.

set(sanitizer_flags "")
if(WORKBENCH_SANITIZE STREQUAL "address")
  set(sanitizer_flags -fsanitize=address,undefined -fno-sanitize-recover=all)
elseif(WORKBENCH_SANITIZE STREQUAL "thread")
  set(sanitizer_flags -fsanitize=thread)
elseif(WORKBENCH_SANITIZE)
  message(FATAL_ERROR "WORKBENCH_SANITIZE is '${WORKBENCH_SANITIZE}'; expected address or thread")
endif()
if(sanitizer_flags)
  list(APPEND sanitizer_flags -fno-omit-frame-pointer -g)
endif()

# They run as long as with -O3, and are compiled in two thirds of the time.
target_compile_options(workbench_plain PUBLIC ${sanitizer_flags} -O1)
target_link_options(workbench_plain PUBLIC ${sanitizer_flags})
enable_testing()
