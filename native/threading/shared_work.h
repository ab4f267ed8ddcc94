#ifndef WORKBENCH_THREADING_SHARED_WORK_H_
#define WORKBENCH_THREADING_SHARED_WORK_H_

// Work that other threads share with the one that has it.
//
// A thread pool's loops give each thread its share and wait for all of them. Where a thread sleeps,
// or is busy with another op, all else waits for it then. Here whoever comes takes what is left:
// nothing waits for a thread that has not come.

#include <cstdint>
#include <functional>
#include <vector>

#include "threading/crew.h"

namespace workbench {

using Part = std::function<void(int64_t begin, int64_t end)>;

struct Phase {
  // Ranges of at most `size` of [0, count), each on one thread.
  int64_t count, size;
  Part part;
};

// Finds a thread that runs a task; false where there is none.
using CallHelper = std::function<bool(std::function<void()>)>;

// Runs all parts of each phase, and one phase after the other.
//
//   helpers: most threads that are called to help. One that comes late finds nothing left, even
//     after this has returned.
//
// Throws what the first part that failed has thrown, once no thread is at a part any more.
void RunShared(std::vector<Phase> phases, int64_t helpers, const CallHelper& call = CallCrew);

}  // namespace workbench

#endif  // WORKBENCH_THREADING_SHARED_WORK_H_
