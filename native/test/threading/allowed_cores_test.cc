#include "threading/allowed_cores.h"

#include <sched.h>

#include <cerrno>
#include <cstddef>

#include "test/support/check.h"

namespace workbench {
namespace {

// A machine whose kernel knows `cores` cores; this process may use the first `allowed` of them.
AskForCores Machine(size_t cores, size_t allowed) {
  return [=](size_t bytes, cpu_set_t* set) {
    if (bytes * 8 < cores) {
      errno = EINVAL;
      return -1;
    }
    CPU_ZERO_S(bytes, set);
    for (size_t i = 0; i < allowed; ++i) CPU_SET_S(i, bytes, set);
    return 0;
  };
}

TEST(CountsTheCoresOfSmallAndLargeMachines) {
  CHECK_EQ(AllowedCores(Machine(8, 3)), 3);
  CHECK_EQ(AllowedCores(Machine(1024, 1024)), 1024);
  CHECK_EQ(AllowedCores(Machine(1025, 1025)), 1025);
  CHECK_EQ(AllowedCores(Machine(8192, 5000)), 5000);
}

TEST(NumbersTheCoresOfSmallAndLargeMachines) {
  CHECK(AllowedCoreNumbers(Machine(8, 3)) == (std::vector<int>{0, 1, 2}));
  CHECK_EQ(AllowedCoreNumbers(Machine(8192, 5000)).back(), 4999);
  CHECK(AllowedCoreNumbers([](size_t, cpu_set_t*) {
          errno = EPERM;
          return -1;
        }).empty());
}

TEST(AnAnswerThatNeverComesIsNoHang) {
  CHECK(AllowedCores([](size_t, cpu_set_t*) {
          errno = EINVAL;
          return -1;
        }) >= 1);
  CHECK(AllowedCores([](size_t, cpu_set_t*) {
          errno = EPERM;
          return -1;
        }) >= 1);
  CHECK_EQ(AllowedCores(Machine(4, 0)), 1);
}

TEST(CountsThisMachine) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return;
  CHECK_EQ(AllowedCores(), CPU_COUNT(&set));
}

}  // namespace
}  // namespace workbench
