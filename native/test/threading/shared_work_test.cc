#include "threading/shared_work.h"

#include <atomic>
#include <chrono>
#include <future>
#include <limits>
#include <new>
#include <thread>
#include <vector>

#include "test/support/check.h"

namespace workbench {
namespace {

using Tasks = std::vector<std::function<void()>>;

// Helpers that come when they are started.
CallHelper KeepIn(Tasks* tasks) {
  return [tasks](std::function<void()> task) {
    tasks->push_back(std::move(task));
    return true;
  };
}

TEST(EachPartRunsOnceAndOnePhaseAfterTheOther) {
  for (int64_t helpers : {0, 1, 3}) {
    for (int64_t size : {1, 3, 64}) {
      constexpr int64_t kCount = 200;
      std::vector<std::atomic<int>> first(kCount), second(kCount);
      std::atomic<int64_t> early{0}, wide{0};
      std::vector<std::thread> pool;
      const auto one = [&](int64_t begin, int64_t end) {
        if (helpers > 0 && end - begin > size) ++wide;
        for (int64_t i = begin; i < end; ++i) ++first[i];
      };
      const auto other = [&](int64_t begin, int64_t end) {
        for (auto& each : first) early += each != 1;
        for (int64_t i = begin; i < end; ++i) ++second[i];
      };
      RunShared({{kCount, size, one}, {0, 1, one}, {kCount, size, other}}, helpers,
                [&](std::function<void()> task) {
                  pool.emplace_back(std::move(task));
                  return true;
                });
      for (const auto& each : second) CHECK_EQ(each, 1);
      CHECK_EQ(early, 0);
      CHECK_EQ(wide, 0);
      for (auto& each : pool) each.join();
      for (const auto& each : first) CHECK_EQ(each, 1);
    }
  }
}

TEST(NothingWaitsForAThreadThatDoesNotCome) {
  Tasks tasks;
  int64_t done = 0;
  {
    std::vector<int64_t> gone(10, 1);
    const auto part = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) done += gone[i];
    };
    RunShared({{10, 2, part}, {10, 3, part}}, 2, KeepIn(&tasks));
  }
  CHECK_EQ(done, 20);
  CHECK_EQ(tasks.size(), size_t{2});
  // What it would work on is gone.
  for (auto& task : tasks) task();
  CHECK_EQ(done, 20);
}

TEST(APartThatAThreadIsAtIsWaitedFor) {
  for (int time = 0; time < 5; ++time) {
    std::atomic<bool> taken{false}, left{false};
    std::atomic<int> ended{0};
    std::thread helper;
    const auto caller = std::this_thread::get_id();
    const auto part = [&](int64_t, int64_t) {
      if (std::this_thread::get_id() == caller) {
        // It goes away at once where the system gave it this core.
        while (!taken && !left) std::this_thread::yield();
      } else {
        taken = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      ++ended;
    };
    RunShared({{2, 1, part}}, 1, [&](std::function<void()> task) {
      if (helper.joinable()) return false;
      helper = std::thread([&left, task = std::move(task)] {
        task();
        left = true;
      });
      return true;
    });
    CHECK_EQ(ended, 2);
    helper.join();
  }
}

TEST(WithoutHelpersAllIsDoneHere) {
  int64_t done = 0, called = 0;
  const auto part = [&](int64_t begin, int64_t end) { done += end - begin; };
  RunShared({{100, 7, part}, {30, 1, part}}, 3, [&](std::function<void()>) {
    ++called;
    return false;
  });
  CHECK_EQ(done, 130);
  CHECK(called > 3);
}

TEST(TheCrewHelps) {
  for (int time = 0; time < 50; ++time) {
    std::vector<std::atomic<int>> done(1000);
    const auto part = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++done[i];
    };
    RunShared({{1000, 3, part}, {1000, 10, part}}, 7);
    for (const auto& each : done) CHECK_EQ(each, 2);
  }
}

// Half of the smallest number that is not denormal.
float HalfOfTheLeast() {
  volatile float least = std::numeric_limits<float>::min();
  return least * 0.5f;
}

TEST(AllThreadsFlushDenormalsAsTensorFlowsDo) {
  const float here = HalfOfTheLeast();
  CHECK(here > 0);
  for (int64_t helpers : {0, 1}) {
    std::atomic<int> kept{0};
    std::atomic<bool> helped{helpers == 0}, called{false};
    std::promise<std::function<void()>> given;
    // A thread computes as the one that started it.
    std::thread helper([&] {
      given.get_future().get()();
      CHECK(HalfOfTheLeast() > 0);
      helped = true;
    });
    const auto caller = std::this_thread::get_id();
    const auto part = [&](int64_t, int64_t) {
      kept += HalfOfTheLeast() != 0;
      if (std::this_thread::get_id() != caller) helped = true;
      while (!helped) std::this_thread::yield();
    };
    RunShared({{2, 1, part}}, helpers, [&](std::function<void()> task) {
      if (called.exchange(true)) return false;
      given.set_value(std::move(task));
      return true;
    });
    CHECK_EQ(kept, 0);
    if (helpers == 0) given.set_value([] {});
    helper.join();
  }
  CHECK_EQ(HalfOfTheLeast(), here);
}

TEST(WhatAPartThrowsIsThrownOnceNoThreadIsAtAPart) {
  for (int64_t helpers : {0, 3}) {
    std::atomic<int> inside{0};
    std::vector<std::thread> pool;
    const auto part = [&](int64_t begin, int64_t) {
      ++inside;
      if (begin % 7 == 0) {
        --inside;
        throw std::bad_alloc();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      --inside;
    };
    bool thrown = false;
    try {
      RunShared({{100, 1, part}, {100, 1, part}}, helpers, [&](std::function<void()> task) {
        pool.emplace_back(std::move(task));
        return true;
      });
    } catch (const std::bad_alloc&) {
      thrown = true;
      CHECK_EQ(inside, 0);
    }
    CHECK(thrown);
    for (auto& each : pool) each.join();
  }
}

TEST(AHelperThatCannotBeCalledIsDoneWithout) {
  int64_t done = 0;
  const auto part = [&](int64_t begin, int64_t end) { done += end - begin; };
  RunShared({{100, 7, part}}, 2, [](std::function<void()>) -> bool { throw std::bad_alloc(); });
  CHECK_EQ(done, 100);
}

TEST(NoPhasesAreDone) {
  Tasks tasks;
  RunShared({}, 1, KeepIn(&tasks));
  for (auto& task : tasks) task();
}

}  // namespace
}  // namespace workbench
