#include <atomic>
#include <cstdint>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "test/support/check.h"
#include "tracing/op_events.h"

namespace workbench {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kSteps = 300;
#else
constexpr int kSteps = 1500;
#endif
constexpr int kThreads = 8;
constexpr int kOps = 100;  // Of each step.

int64_t StepOf(int thread, int step) { return int64_t{thread} * 1'000'000 + step; }

// Steps of one client, each with a function called within; the nodes count up.
void RunSteps(int thread) {
  OpEvents& events = OpEvents::Get();
  uint32_t node = 0;
  for (int step = 0; step < kSteps; ++step) {
    const uint32_t root = events.BeginRun(StepOf(thread, step), thread);
    const uint32_t nested = events.BeginRun(StepOf(thread, step), 100 + thread);
    for (int op = 0; op < kOps; ++op) {
      const uint64_t now = Ticks();
      OpEvents::Add({now, now, now, node++, op % 2 ? root : nested});
    }
    events.EndRun(nested);
    events.EndRun(root);
  }
}

TEST(EveryEventComesOnceWhileOthersWrite) {
  OpEvents& events = OpEvents::Get();
  events.Record(true);
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&running, t] {
      RunSteps(t);
      --running;
    });
  }
  std::map<int64_t, int> roots, nested;
  std::thread takes_runs([&] {
    while (running.load() > 0 || events.ended_runs() > 0) {
      for (const DrainedRun& run : events.TakeRuns(500)) {
        CHECK_EQ(run.root, run.executor < 100);
        CHECK_EQ(run.step / 1'000'000, run.executor % 100);
        CHECK_EQ((run.root ? roots : nested)[run.step]++, 0);
      }
    }
  });
  std::map<int32_t, int64_t> seen;  // Of each thread.
  std::mt19937 random(1);
  while (running.load() > 0 || events.ready() > 0) {
    const int64_t most = random() % 3 == 0 ? int64_t{1} << 40 : int64_t(random() % 5000);
    const auto ops = events.TakeOps(most);
    CHECK(int64_t(ops.size()) <= most);
    for (const DrainedOp& op : ops) {
      int64_t& next = seen[op.thread];
      CHECK_EQ(int64_t{op.node}, next);
      CHECK_EQ(op.step % 1'000'000, next / kOps);
      ++next;
    }
  }
  for (std::thread& thread : threads) thread.join();
  takes_runs.join();
  events.Record(false);
  CHECK_EQ(events.lost(), 0);
  CHECK_EQ(seen.size(), size_t{kThreads});
  for (const auto& [thread, count] : seen) CHECK_EQ(count, int64_t{kSteps} * kOps);
  CHECK_EQ(roots.size(), size_t{kThreads} * kSteps);
  CHECK_EQ(nested.size(), size_t{kThreads} * kSteps);
}

// All calls at once, recordings that begin anew too: what is torn, deadlocks or races shows here or
// under a sanitizer.
TEST(EverythingAtOnce) {
  OpEvents& events = OpEvents::Get();
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&running, t] {
      // Threads that end while others drain.
      for (int life = 0; life < 4; ++life) {
        std::thread([t] { RunSteps(t); }).join();
      }
      --running;
    });
  }
  std::thread switches([&] {
    for (bool on = true; running.load() > 0; on = !on) {
      events.Record(on);
      std::this_thread::yield();
    }
  });
  std::thread drains([&] {
    while (running.load() > 0) {
      for (const DrainedOp& op : events.TakeOps(20'000)) {
        CHECK_EQ(op.step % 1'000'000, int64_t{op.node} / kOps);
      }
      events.TakeRuns(1000);
    }
  });
  while (running.load() > 0) {
    CHECK(events.ready() >= 0 && events.ended_runs() >= 0);
    events.AddNodes({{"n", "Op", "cpu"}});
    CHECK(!events.nodes().empty());
    events.threads();
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  switches.join();
  drains.join();
  events.Record(false);
  events.Record(true);
  CHECK_EQ(events.ready(), 0);
  CHECK_EQ(events.ended_runs(), 0);
  CHECK(events.TakeOps(10).empty());
}

}  // namespace
}  // namespace workbench
