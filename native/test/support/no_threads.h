#ifndef WORKBENCH_TEST_SUPPORT_NO_THREADS_H_
#define WORKBENCH_TEST_SUPPORT_NO_THREADS_H_

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/support/check.h"

namespace workbench::test {

// Runs `run` in a process of its own to which the system gives no thread.
template <class Run>
void WithoutThreads(const Run& run) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    const rlimit none{0, 0};
    // The limit does not bind root.
    CHECK(geteuid() != 0 || setresuid(65534, 65534, 65534) == 0);
    CHECK_EQ(setrlimit(RLIMIT_NPROC, &none), 0);
    run();
    _exit(0);
  }
  int status = 0;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
}

}  // namespace workbench::test

#endif  // WORKBENCH_TEST_SUPPORT_NO_THREADS_H_
