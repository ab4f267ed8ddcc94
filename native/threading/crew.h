#ifndef WORKBENCH_THREADING_CREW_H_
#define WORKBENCH_THREADING_CREW_H_

// Threads that help wherever a core has nothing to do.
//
// The operating system leaves a core idle for milliseconds while threads queue for another one,
// for it does not move what has just run. So each core has a thread of its own here, which can run
// nowhere else: work moves, and threads do not.

#include <cstdint>
#include <functional>

namespace workbench {

// While one lives its thread counts as at work on the core that it runs on.
class AtWork {
 public:
  AtWork();
  ~AtWork();
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;

  // Notes which core the calling thread runs on now. From time to time.
  static void Refresh();

  // Whether another thread is at work on the calling thread's core.
  static bool IsCrowded();

 private:
  const bool counts_;
};

// Has the thread of a core on which none is at work run `task`; false where there is no such core.
bool CallCrew(std::function<void()> task);

}  // namespace workbench

#endif  // WORKBENCH_THREADING_CREW_H_
