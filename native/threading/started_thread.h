#ifndef WORKBENCH_THREADING_STARTED_THREAD_H_
#define WORKBENCH_THREADING_STARTED_THREAD_H_

#include <exception>
#include <thread>
#include <utility>

namespace workbench {

// A thread that runs `run`; one that is not joinable where the system has none to give, as where a
// container limits them.
template <class Run>
std::thread StartedThread(Run run) {
  try {
    return std::thread(std::move(run));
  } catch (const std::exception&) {
    return std::thread();
  }
}

}  // namespace workbench

#endif  // WORKBENCH_THREADING_STARTED_THREAD_H_
