#include "threading/allowed_cores.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <thread>
#include <vector>

namespace workbench {
namespace {

// Linux can be built for 8,192; beyond this the answer is wrong for another reason.
constexpr size_t kMostCores = size_t{1} << 20;

// Nothing where the operating system does not say.
std::optional<std::vector<int>> Numbers(const AskForCores& ask) {
  // The call fails with EINVAL where the set is smaller than the kernel's own.
  for (size_t cores = CPU_SETSIZE; cores <= kMostCores; cores *= 2) {
    std::vector<cpu_set_t> set(cores / CPU_SETSIZE);
    const size_t bytes = set.size() * sizeof(cpu_set_t);
    if (ask(bytes, set.data()) == 0) {
      std::vector<int> numbers;
      for (size_t core = 0; core < cores; ++core) {
        if (CPU_ISSET_S(core, bytes, set.data())) numbers.push_back(static_cast<int>(core));
      }
      return numbers;
    }
    if (errno != EINVAL) break;
  }
  return std::nullopt;
}

}  // namespace

int AllowedCores() {
  return AllowedCores([](size_t bytes, cpu_set_t* cores) {
    return sched_getaffinity(0, bytes, cores);
  });
}

int AllowedCores(const AskForCores& ask) {
  const auto numbers = Numbers(ask);
  return std::max(1, int(numbers ? numbers->size() : std::thread::hardware_concurrency()));
}

std::vector<int> AllowedCoreNumbers(const AskForCores& ask) {
  return Numbers(ask).value_or(std::vector<int>());
}

}  // namespace workbench
