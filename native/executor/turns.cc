#include "executor/turns.h"

#include <sched.h>

namespace workbench {
namespace {

// A step seldom takes longer; a step that takes its turn late has lost little.
constexpr std::chrono::milliseconds kPatience{100};

// A turn goes to a thread that sleeps; another one keeps the core busy until it has woken up.
constexpr int kPerCore = 2;

int Cores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 1;
  return CPU_COUNT(&allowed);
}

}  // namespace

thread_local bool Turn::held_ = false;

Turns& Turns::Get() {
  // Never destroyed: threads that run steps may outlive what is static here.
  static Turns* turns = new Turns(kPerCore * Cores(), kPatience);
  return *turns;
}

}  // namespace workbench
