#include "executor/scheduling/allowed_cores.h"

#include <algorithm>
#include <cerrno>
#include <thread>
#include <vector>

namespace workbench {
namespace {

// Linux can be built for 8,192; beyond this the answer is wrong for another reason.
constexpr size_t kMostCores = size_t{1} << 20;

}  // namespace

int AllowedCores() {
  return AllowedCores([](size_t bytes, cpu_set_t* cores) {
    return sched_getaffinity(0, bytes, cores);
  });
}

int AllowedCores(const AskForCores& ask) {
  // The call fails with EINVAL where the set is smaller than the kernel's own.
  for (size_t cores = CPU_SETSIZE; cores <= kMostCores; cores *= 2) {
    std::vector<cpu_set_t> set(cores / CPU_SETSIZE);
    const size_t bytes = set.size() * sizeof(cpu_set_t);
    if (ask(bytes, set.data()) == 0) return std::max(1, CPU_COUNT_S(bytes, set.data()));
    if (errno != EINVAL) break;
  }
  return std::max(1, int(std::thread::hardware_concurrency()));
}

}  // namespace workbench
