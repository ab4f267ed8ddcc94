#include "threading/crew.h"

#include <sched.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "test/support/check.h"
#include "test/support/no_threads.h"
#include "threading/allowed_cores.h"

namespace workbench {
namespace {

std::vector<int> AllowedHere() {
  return AllowedCoreNumbers([](size_t bytes, cpu_set_t* cores) {
    return sched_getaffinity(0, bytes, cores);
  });
}

void StayOn(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  CHECK_EQ(sched_setaffinity(0, sizeof(cores), &cores), 0);
}

// Tasks that note their core and wait until they may end.
class Tasks {
 public:
  std::function<void()> Task() {
    return [this] {
      std::unique_lock<std::mutex> hold(mu_);
      cores_.push_back(sched_getcpu());
      changed_.notify_all();
      changed_.wait(hold, [this] { return may_end_; });
      ++ended_;
      changed_.notify_all();
    };
  }

  std::vector<int> AwaitStarted(size_t count) {
    std::unique_lock<std::mutex> hold(mu_);
    changed_.wait(hold, [&] { return cores_.size() >= count; });
    return cores_;
  }

  void End() {
    std::unique_lock<std::mutex> hold(mu_);
    may_end_ = true;
    changed_.notify_all();
    changed_.wait(hold, [this] { return ended_ == cores_.size(); });
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  std::vector<int> cores_;
  bool may_end_ = false;
  size_t ended_ = 0;
};

// Runs on a thread of its own, which may be bound to a core.
void Apart(const std::function<void()>& run) { std::thread(run).join(); }

// First: no thread was made yet.
TEST(WhereNoThreadIsToBeHadNoneIsCalled) {
  test::WithoutThreads([] {
    Tasks tasks;
    for (int time = 0; time < 3; ++time) CHECK(!CallCrew(tasks.Task()));
  });
}

TEST(EachCoreButOneAtWorkIsCalledOnce) {
  const std::vector<int> cores = AllowedHere();
  Apart([&] {
    StayOn(cores.back());
    const AtWork at_work;
    Tasks tasks;
    size_t called = 0;
    while (CallCrew(tasks.Task())) ++called;
    CHECK_EQ(called, cores.size() - 1);
    for (const int core : tasks.AwaitStarted(called)) CHECK(core != cores.back());
    CHECK(!CallCrew(tasks.Task()));
    tasks.End();
  });
}

TEST(AThreadIsFreeAgainAfterItsTask) {
  const std::vector<int> cores = AllowedHere();
  Apart([&] {
    for (int time = 0; time < 20; ++time) {
      Tasks tasks;
      // The one before may not be back yet.
      while (!CallCrew(tasks.Task())) std::this_thread::yield();
      tasks.AwaitStarted(1);
      tasks.End();
    }
  });
}

TEST(ThreadsAtWorkAreCountedOnceAndWhereTheyRun) {
  const std::vector<int> cores = AllowedHere();
  Apart([&] {
    StayOn(cores.front());
    const AtWork at_work;
    { const AtWork again; }
    CHECK(!AtWork::IsCrowded());
    Apart([&] {
      const AtWork other;
      CHECK(AtWork::IsCrowded());
    });
    CHECK(!AtWork::IsCrowded());
    if (cores.size() == 1) return;
    StayOn(cores.back());
    AtWork::Refresh();
    std::thread other([&] {
      StayOn(cores.front());
      const AtWork alone;
      CHECK(!AtWork::IsCrowded());
    });
    other.join();
  });
}

}  // namespace
}  // namespace workbench
