#include "tracing/op_events.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "test/support/check.h"

namespace workbench {
namespace {

// A chunk of a log holds somewhat fewer; no bound of the tests depends on how many.
constexpr int64_t kMoreThanAChunk = 10'000;
constexpr int64_t kMostEvents = OpEvents::kMostBytes / int64_t{sizeof(OpEvent)};

OpEvents& Events() { return OpEvents::Get(); }

// A recording that begins anew.
OpEvents& Fresh() {
  Events().Record(false);
  Events().Record(true);
  CHECK_EQ(Events().ready(), 0);
  CHECK_EQ(Events().lost(), 0);
  CHECK_EQ(Events().ended_runs(), 0);
  return Events();
}

void Add(uint32_t run, uint32_t node) {
  const uint64_t now = Ticks();
  OpEvents::Add({now, now, now, node, run});
}

void AddMany(uint32_t run, int64_t count) {
  for (int64_t i = 0; i < count; ++i) Add(run, uint32_t(i));
}

template <typename Work>
void OnThread(const Work& work) {
  std::thread thread(work);
  thread.join();
}

TEST(HandsOutEachEventOnceAndInOrder) {
  OpEvents& events = Fresh();
  const uint32_t run = events.BeginRun(/*step=*/41, /*executor=*/3);
  for (uint32_t node : {7, 5, 6}) Add(run, node);
  CHECK_EQ(events.ready(), 3);
  const auto ops = events.TakeOps(10);
  CHECK_EQ(ops.size(), 3u);
  CHECK_EQ(ops[0].node, 7);
  CHECK_EQ(ops[1].node, 5);
  CHECK_EQ(ops[2].node, 6);
  for (const DrainedOp& op : ops) {
    CHECK_EQ(op.step, 41);
    CHECK_EQ(op.thread, ops[0].thread);
  }
  CHECK_EQ(events.ready(), 0);
  CHECK(events.TakeOps(10).empty());
  events.EndRun(run);
}

TEST(CountsMemoryInLines) {
  CHECK_EQ(OpEvent::Lines(0), 0u);
  CHECK_EQ(OpEvent::Lines(1), 1u);
  CHECK_EQ(OpEvent::Lines(64), 1u);
  CHECK_EQ(OpEvent::Lines(65), 2u);
  CHECK_EQ(OpEvent::Lines(int64_t{1} << 50), 0xffffffffu);
  OpEvents& events = Fresh();
  const uint32_t run = events.BeginRun(1, 0);
  const uint64_t now = Ticks();
  OpEvents::Add({now, now, now, 3, run, OpEvent::Lines(100), OpEvent::Lines(int64_t{5} << 30)});
  events.EndRun(run);
  const auto ops = events.TakeOps(10);
  CHECK_EQ(ops[0].made_bytes, 128);
  CHECK_EQ(ops[0].passed_bytes, int64_t{5} << 30);
}

TEST(TakesNoMoreThanAsked) {
  OpEvents& events = Fresh();
  const uint32_t run = events.BeginRun(1, 0);
  AddMany(run, 3 * kMoreThanAChunk);
  events.EndRun(run);
  CHECK(events.TakeOps(0).empty());
  int64_t next = 0;
  for (int64_t most : {int64_t{1}, int64_t{2}, kMoreThanAChunk, kMoreThanAChunk + 1}) {
    for (const DrainedOp& op : events.TakeOps(most)) CHECK_EQ(op.node, next++);
  }
  CHECK_EQ(next, 2 * kMoreThanAChunk + 4);
  CHECK_EQ(events.ready(), 3 * kMoreThanAChunk - next);
  for (const DrainedOp& op : events.TakeOps(kMostEvents)) CHECK_EQ(op.node, next++);
  CHECK_EQ(next, 3 * kMoreThanAChunk);
}

TEST(TimesAreThoseOfTheWallClock) {
  constexpr int64_t kInexact = 200'000;
  OpEvents& events = Fresh();
  const uint32_t run = events.BeginRun(1, 0);
  const int64_t before = WallNanos();
  const uint64_t scheduled = Ticks();
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  const uint64_t start = Ticks();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  OpEvents::Add({scheduled, start, Ticks(), 0, run});
  const int64_t after = WallNanos();
  events.EndRun(run);
  const auto ops = events.TakeOps(1);
  CHECK(ops[0].scheduled_ns > before - kInexact);
  CHECK(ops[0].start_ns - ops[0].scheduled_ns > 3'000'000 - kInexact);
  CHECK(ops[0].end_ns - ops[0].start_ns > 2'000'000 - kInexact);
  CHECK(ops[0].end_ns < after + kInexact);
  const auto runs = events.TakeRuns(1);
  CHECK(runs[0].start_ns < ops[0].scheduled_ns + kInexact);
  CHECK(runs[0].end_ns > ops[0].end_ns - kInexact);
}

TEST(TheFirstRunOfAStepIsItsRoot) {
  OpEvents& events = Fresh();
  const uint32_t root = events.BeginRun(5, 10);
  const uint32_t nested = events.BeginRun(5, 11);
  const uint32_t other = events.BeginRun(6, 10);
  Add(nested, 1);
  Add(other, 2);
  Add(root, 3);
  events.EndRun(nested);
  const uint32_t second = events.BeginRun(5, 11);
  for (uint32_t run : {second, root, other}) events.EndRun(run);
  // All runs of step 5 have ended: whoever comes now begins it.
  events.EndRun(events.BeginRun(5, 12));
  const auto runs = events.TakeRuns(10);
  CHECK_EQ(runs.size(), 5u);
  const std::vector<std::vector<int64_t>> expected = {
      {5, 10, true}, {5, 11, false}, {6, 10, true}, {5, 11, false}, {5, 12, true}};
  for (size_t i = 0; i < runs.size(); ++i) {
    CHECK_EQ(runs[i].step, expected[i][0]);
    CHECK_EQ(runs[i].executor, expected[i][1]);
    CHECK_EQ(int64_t{runs[i].root}, expected[i][2]);
    CHECK_EQ(runs[i].thread, int64_t{syscall(SYS_gettid)});
    CHECK(runs[i].end_ns >= runs[i].start_ns);
  }
  const auto ops = events.TakeOps(10);
  CHECK_EQ(ops[0].step, 5);
  CHECK_EQ(ops[1].step, 6);
  CHECK_EQ(ops[2].step, 5);
}

TEST(RunsUnderWayStayUntilTheyEnd) {
  OpEvents& events = Fresh();
  const uint32_t first = events.BeginRun(1, 0), second = events.BeginRun(2, 0);
  CHECK_EQ(events.ended_runs(), 0);
  CHECK(events.TakeRuns(10).empty());
  events.EndRun(second);
  CHECK_EQ(events.ended_runs(), 1);
  CHECK_EQ(events.TakeRuns(10)[0].step, 2);
  events.EndRun(first);
  events.EndRun(events.BeginRun(3, 0));
  CHECK_EQ(events.ended_runs(), 2);
  CHECK_EQ(events.TakeRuns(1)[0].step, 1);
  CHECK_EQ(events.TakeRuns(1)[0].step, 3);
  CHECK(events.TakeRuns(1).empty());
}

TEST(EventsAreOfTheirStepHoweverManyRunsHaveGone) {
  OpEvents& events = Fresh();
  const uint32_t first = events.BeginRun(1000, 0);
  uint32_t long_one = 0;
  for (int step = 0; step < 100; ++step) {
    const uint32_t run = events.BeginRun(step, 0);
    if (step == 50) events.EndRun(first);
    if (step == 60) long_one = events.BeginRun(2000, 0);
    Add(run, 1);
    events.EndRun(run);
    const auto ops = events.TakeOps(10);
    CHECK_EQ(ops.size(), 1u);
    CHECK_EQ(ops[0].step, step);
    if (step % 7 == 3) CHECK_EQ(events.TakeRuns(3).size(), 3u);
  }
  Add(long_one, 2);
  CHECK_EQ(events.TakeOps(10)[0].step, 2000);
  events.EndRun(long_one);
  int64_t left = events.ended_runs();
  CHECK_EQ(left, 102 - 14 * 3);
  while (left > 0) left -= int64_t(events.TakeRuns(10).size());
  CHECK_EQ(left, 0);
}

TEST(EventsAreOfTheirStepWhenTheRunWasTakenFirst) {
  OpEvents& events = Fresh();
  const uint32_t run = events.BeginRun(9, 0);
  AddMany(run, 5);
  events.EndRun(run);
  CHECK_EQ(events.TakeRuns(10).size(), 1u);
  CHECK_EQ(events.TakeOps(2).size(), 2u);
  const auto ops = events.TakeOps(10);
  CHECK_EQ(ops.size(), 3u);
  CHECK_EQ(ops[0].step, 9);
  CHECK_EQ(ops[0].node, 2);
}

TEST(ANewRecordingDropsWhatTheLastOneLeft) {
  OpEvents& events = Fresh();
  const uint32_t run = events.BeginRun(1, 0);
  AddMany(run, 2 * kMoreThanAChunk);
  events.EndRun(run);
  events.Record(false);
  CHECK(!events.recording());
  CHECK_EQ(events.ready(), 2 * kMoreThanAChunk);  // Off is no reason to drop them.
  CHECK_EQ(events.ended_runs(), 1);
  events.Record(true);
  CHECK(events.recording());
  CHECK_EQ(events.ready(), 0);
  CHECK_EQ(events.ended_runs(), 0);
  CHECK(events.TakeOps(10).empty());
  const uint32_t next = events.BeginRun(2, 0);
  Add(next, 4);
  events.EndRun(next);
  CHECK_EQ(events.TakeOps(10)[0].step, 2);
  CHECK_EQ(events.TakeRuns(10)[0].step, 2);
}

TEST(OnTwiceDropsNothing) {
  OpEvents& events = Fresh();
  const uint32_t run = events.BeginRun(1, 0);
  Add(run, 4);
  events.Record(true);
  CHECK_EQ(events.ready(), 1);
  events.EndRun(run);
}

TEST(AStepKeepsToWhatItBeganWith) {
  OpEvents& events = Fresh();
  const uint32_t ended = events.BeginRun(1, 0), waits = events.BeginRun(2, 0);
  Add(waits, 1);
  events.EndRun(ended);
  events.Record(false);
  Add(waits, 2);
  events.Record(true);
  Add(waits, 3);
  const auto ops = events.TakeOps(10);
  CHECK_EQ(ops.size(), 1u);
  CHECK_EQ(ops[0].node, 3);
  CHECK_EQ(ops[0].step, 2);
  events.Record(false);
  events.EndRun(waits);
  const auto runs = events.TakeRuns(10);
  CHECK_EQ(runs.size(), 1u);
  CHECK_EQ(runs[0].step, 2);
}

TEST(NumbersNodesAndKeepsTheirNames) {
  const uint32_t first = Events().AddNodes({{"a", "Const", "cpu"}, {"b", "Add", "cpu"}});
  const uint32_t second = Events().AddNodes({{"c", "Mul", "gpu"}});
  CHECK_EQ(second, first + 2);
  const auto nodes = Events().nodes();
  CHECK_EQ(nodes.size(), size_t{second} + 1);
  CHECK_EQ(nodes[first + 1].name, "b");
  CHECK_EQ(nodes[second].op, "Mul");
  CHECK_EQ(nodes[second].device, "gpu");
}

TEST(EdgesLieBetweenTheNodesAddedWithThem) {
  Events().AddNodes({{"x", "Const", "cpu"}});
  const uint32_t first = Events().AddNodes({{"a", "Const", "cpu"}, {"b", "Add", "cpu"}},
                                           {{0, 1, false}, {0, 1, true}});
  const auto edges = Events().edges();
  CHECK_EQ(edges.size(), 2u);
  CHECK_EQ(edges[0].source, first);
  CHECK_EQ(edges[0].target, first + 1);
  CHECK(!edges[0].control);
  CHECK(edges[1].control);
}

TEST(KnowsTheThreads) {
  OpEvents& events = Fresh();
  const uint32_t run = events.BeginRun(1, 0);
  int64_t tid = 0;
  OnThread([&] {
    pthread_setname_np(pthread_self(), "tf_Compute");
    tid = syscall(SYS_gettid);
    Add(run, 1);
    const uint32_t nested = events.BeginRun(2, 0);
    events.EndRun(nested);
  });
  Add(run, 2);
  const auto ops = events.TakeOps(10);
  CHECK_EQ(ops.size(), 2u);
  const auto threads = events.threads();
  for (const DrainedOp& op : ops) {
    const bool ours = op.node == 2;
    CHECK_EQ(threads[op.thread].tid, ours ? int64_t{syscall(SYS_gettid)} : tid);
    CHECK_EQ(threads[op.thread].name == "tf_Compute", !ours);
  }
  CHECK_EQ(events.TakeRuns(1)[0].thread, tid);
  events.EndRun(run);
}

// Each has a chunk while it lives: there are fewer chunks than threads.
TEST(ThreadsMayComeAndGo) {
  constexpr int kThreads = 2500;
  OpEvents& events = Fresh();
  const uint32_t run = events.BeginRun(1, 0);
  int64_t taken = 0;
  for (int i = 0; i < kThreads; ++i) {
    OnThread([&] { Add(run, uint32_t(i)); });
    if (i % 100 == 99) taken += int64_t(events.TakeOps(kMostEvents).size());
  }
  CHECK_EQ(taken, kThreads);
  CHECK_EQ(events.lost(), 0);
  // A new recording drops those of ended threads too.
  OnThread([&] { AddMany(run, 2 * kMoreThanAChunk); });
  events.EndRun(run);
  Fresh();
  CHECK(events.TakeOps(10).empty());
}

// Goes when all else of its thread is gone, as it was there before.
struct AddsLate {
  bool armed = false;
  uint32_t run = 0;
  ~AddsLate() {
    if (armed) Add(run, 2);
  }
};

TEST(WhatComesAfterAThreadsEndIsLost) {
  OpEvents& events = Fresh();
  const uint32_t run = events.BeginRun(1, 0);
  OnThread([&] {
    static thread_local AddsLate late;
    late.run = run;  // It is made here, before anything is known of this thread.
    Add(run, 1);
    late.armed = true;
  });
  CHECK_EQ(events.ready(), 1);
  CHECK_EQ(events.lost(), 1);
  events.EndRun(run);
}

TEST(ChunksAreUsedAgain) {
  OpEvents& events = Fresh();
  const uint32_t run = events.BeginRun(1, 0);
  constexpr int64_t kSlice = 300'000;
  for (int64_t written = 0; written < kMostEvents + kMostEvents / 4; written += kSlice) {
    AddMany(run, kSlice);
    CHECK_EQ(int64_t(events.TakeOps(kMostEvents).size()), kSlice);
  }
  CHECK_EQ(events.lost(), 0);
  events.EndRun(run);
}

TEST(WhatAPeakTookGoesBackOnceItIsTaken) {
  OpEvents& events = Fresh();
  for (int i = 0; i < 100'000; ++i) events.EndRun(events.BeginRun(i, 0));
  OnThread([&] { AddMany(events.BeginRun(1, 0), 3'000'000); });
  events.EndRun(events.BeginRun(2, 0));
  CHECK(events.held_bytes() > 96'000'000);
  events.Record(false);
  CHECK_EQ(events.TakeOps(4'000'000).size(), 3'000'000u);
  CHECK_EQ(events.TakeRuns(1'000'000).size(), 100'001u);
  CHECK_EQ(events.TakeOps(1).size(), 0u);
  CHECK(events.held_bytes() < (20 << 20));
  // The next recording has room again.
  Fresh();
  AddMany(events.BeginRun(3, 0), kMoreThanAChunk);
  CHECK_EQ(events.ready(), kMoreThanAChunk);
}

TEST(BeyondTheBoundEventsAreLostAndCounted) {
  OpEvents& events = Fresh();
  const uint32_t run = events.BeginRun(1, 0);
  const int64_t written = kMostEvents + 1000;
  AddMany(run, written);
  const int64_t kept = events.ready();
  CHECK_EQ(kept + events.lost(), written);
  CHECK(kept <= kMostEvents && kept > kMostEvents * 9 / 10);
  // Others get nothing either, whether they have written before or not.
  OnThread([&] { Add(run, 1); });
  CHECK_EQ(events.ready(), kept);
  CHECK_EQ(kept + events.lost(), written + 1);
  // The oldest are kept. Room that is made is used again.
  int64_t next = 0;
  for (const DrainedOp& op : events.TakeOps(500'000)) CHECK_EQ(op.node, next++);
  AddMany(run, 1000);
  CHECK_EQ(kept + events.lost(), written + 1);
  CHECK_EQ(events.ready(), kept - 500'000 + 1000);
  events.EndRun(run);
  Fresh();  // Nothing is lost of a new recording.
  const uint32_t fresh = events.BeginRun(2, 0);
  AddMany(fresh, 10 * kMoreThanAChunk);
  CHECK_EQ(events.lost(), 0);
  events.EndRun(fresh);
  Fresh();
}

}  // namespace
}  // namespace workbench
