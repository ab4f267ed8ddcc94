#ifndef WORKBENCH_THREADING_ALLOWED_CORES_H_
#define WORKBENCH_THREADING_ALLOWED_CORES_H_

#include <sched.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace workbench {

// Asks the operating system on which cores this process may run: 0, or -1 with errno set.
using AskForCores = std::function<int(size_t bytes, cpu_set_t* cores)>;

// How many cores this process may run on, on a machine with any number of them; at least 1.
int AllowedCores();
int AllowedCores(const AskForCores& ask);

// Their numbers; none where the operating system does not say.
std::vector<int> AllowedCoreNumbers(const AskForCores& ask);

}  // namespace workbench

#endif  // WORKBENCH_THREADING_ALLOWED_CORES_H_
