// Runs whose updates trail: how far behind they are, in which order, and what frees them.

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "staging/buffer/stage_buffer.h"
#include "test/staging/buffer/calls.h"
#include "test/support/check.h"

namespace workbench {
namespace {

using namespace test;  // NOLINT

CallPtr Begin(Buffer& buffer, int64_t thread, int64_t token = 1) {
  auto call = std::make_shared<Call>();
  buffer.Begin(call->ticket, token, thread, [call](const Outcome& how) { call->End(how); });
  return call;
}

CallPtr Await(Buffer& buffer, int64_t thread, int64_t token = 1) {
  auto call = std::make_shared<Call>();
  buffer.Await(call->ticket, token, thread, [call](const Outcome& outcome, Box box) {
    CHECK_EQ(outcome.ok(), box != nullptr);
    if (box != nullptr) call->value = *box;
    call->End(outcome);
  });
  return call;
}

CallPtr Settle(Buffer& buffer) {
  auto call = std::make_shared<Call>();
  buffer.Settle(call->ticket, [call](const Outcome& how) { call->End(how); });
  return call;
}

int TakeAt(Buffer& buffer, int64_t step) {
  int value = -1;
  buffer.Take(std::make_shared<Ticket>(), step, kLong, [&](const Outcome& outcome, Box box) {
    CHECK(outcome.ok());
    value = *box;
  });
  return value;
}

CallPtr PutOf(Buffer& buffer, int64_t thread, int value) {
  return Put(buffer, value, kLong, /*token=*/1, thread);
}

Outcome Return(Buffer& buffer, int64_t step, int value) {
  return buffer.Return(step, std::make_unique<int>(value));
}

// A run that has put an item; what it waits for.
CallPtr Run(Buffer& buffer, int64_t thread, int value) {
  CHECK(Begin(buffer, thread)->ok());
  CHECK(PutOf(buffer, thread, value)->ok());
  return Await(buffer, thread);
}

TEST(ARunGetsWhatTheStepReturnsThatTookItsItem) {
  auto buffer = Open(2);
  auto first = Run(*buffer, 0, 10);
  auto second = Run(*buffer, 1, 20);
  CHECK_EQ(TakeAt(*buffer, 5), 10);
  CHECK_EQ(TakeAt(*buffer, 6), 20);
  CHECK(Return(*buffer, 6, 66).ok());
  CHECK(first->waits());
  CHECK_EQ(second->value, 66);
  CHECK(Return(*buffer, 5, 55).ok());
  CHECK_EQ(first->value, 55);
}

TEST(WhatIsReturnedEarlyIsKept) {
  auto buffer = Open(1);
  CHECK(Begin(*buffer, 0)->ok());
  PutOf(*buffer, 0, 10);
  CHECK_EQ(TakeAt(*buffer, 5), 10);
  CHECK(Return(*buffer, 5, 55).ok());
  buffer->EndStep(5);
  CHECK_EQ(Await(*buffer, 0)->value, 55);
}

TEST(RunsBeginInOrderOnceTheOneBeforeHasPut) {
  auto buffer = Open(3);
  CHECK(Begin(*buffer, 0)->ok());
  auto second = Begin(*buffer, 1);
  auto third = Begin(*buffer, 2);
  CHECK(second->waits());
  PutOf(*buffer, 0, 1);
  CHECK(second->ok());
  CHECK(third->waits());
  PutOf(*buffer, 1, 2);
  CHECK(third->ok());
}

TEST(ARunThatEndsWithoutAnItemHoldsNobodyUp) {
  auto buffer = Open(2);
  CHECK(Begin(*buffer, 0)->ok());
  auto second = Begin(*buffer, 1);
  auto again = Begin(*buffer, 0);
  CHECK(second->ok());
  CHECK(again->waits());
  buffer->EndRun(1, 1);
  CHECK(again->ok());
}

// Run n begins when run n - capacity has ended, whatever those between do.
TEST(NoRunLacksMoreUpdatesThanTheCapacityLessOne) {
  for (int capacity : {1, 2, 3}) {
    auto buffer = Open(capacity);
    for (int thread = 0; thread < capacity; ++thread) Run(*buffer, thread, thread);
    for (int step = 0; step < capacity; ++step) {
      TakeAt(*buffer, step);
      CHECK(Return(*buffer, step, step).ok());
    }
    auto ahead = Begin(*buffer, capacity);
    CHECK(ahead->waits());
    // A later run ends first: the oldest one is what the next waits for.
    if (capacity > 1) {
      buffer->EndRun(1, capacity - 1);
      CHECK(ahead->waits());
    }
    buffer->EndRun(1, 0);
    CHECK(ahead->ok());
  }
}

TEST(AStepThatReturnsNothingFreesItsRun) {
  auto buffer = Open(2);
  auto first = Run(*buffer, 0, 10);
  CHECK(Begin(*buffer, 1)->ok());
  PutOf(*buffer, 1, 20);
  TakeAt(*buffer, 5);
  TakeAt(*buffer, 6);
  buffer->EndStep(5);
  buffer->EndStep(6);
  CHECK(first->outcome.code == Code::kCancelled);
  CHECK(Await(*buffer, 1)->outcome.code == Code::kCancelled);
  CHECK(!Return(*buffer, 5, 55).ok());
}

TEST(AStepThatTookNothingReturnsNothing) {
  auto buffer = Open(1);
  CHECK(Return(*buffer, 5, 55).code == Code::kFailedPrecondition);
}

TEST(ARunWithoutAnItemAwaitsNothing) {
  auto buffer = Open(1);
  CHECK(Begin(*buffer, 0)->ok());
  CHECK(Await(*buffer, 0)->outcome.code == Code::kCancelled);
}

TEST(ARestartFreesTheRunsWhoseItemsItDrops) {
  auto buffer = Buffer::Create("clicks", 2);
  buffer->Resume(1, /*producers=*/2);
  auto taken = Run(*buffer, 0, 10);
  auto dropped = Run(*buffer, 1, 20);
  TakeAt(*buffer, 5);
  auto restart = std::make_shared<Call>();
  buffer->Restart(restart->ticket, 9, kLong, [&](const Outcome& how) { restart->End(how); });
  CHECK(dropped->outcome.code == Code::kCancelled);
  CHECK(Begin(*buffer, 1)->outcome.code == Code::kCancelled);
  CHECK(Return(*buffer, 5, 55).ok());
  CHECK_EQ(taken->value, 55);
  CHECK(restart->waits());
  for (int64_t thread : {0, 1}) {
    buffer->EndRun(1, thread);
    buffer->Rest(std::make_shared<Ticket>(), 1, RestReason::kReady, "", [](const Outcome&) {});
  }
  CHECK(restart->ok());
}

TEST(AStopFreesRunsButLetsReturnedUpdatesEnd) {
  auto buffer = Open(3);
  auto returned = Run(*buffer, 0, 10);
  auto taken = Run(*buffer, 1, 20);
  auto ready = Run(*buffer, 2, 30);
  auto waiting = Begin(*buffer, 3);
  TakeAt(*buffer, 5);
  TakeAt(*buffer, 6);
  CHECK(Return(*buffer, 5, 55).ok());
  buffer->Cancel(1, 1, "stop");
  CHECK_EQ(returned->value, 55);
  CHECK(ready->outcome.code == Code::kCancelled);
  CHECK(waiting->outcome.code == Code::kCancelled);
  CHECK(taken->waits());
  CHECK(Return(*buffer, 6, 66).ok());
  CHECK_EQ(taken->value, 66);
  CHECK(Settle(*buffer)->ok());
}

TEST(AfterAnErrorStepsStillTrainOnWhatIsInTheBuffer) {
  auto buffer = Open(2);
  auto run = Run(*buffer, 0, 10);
  buffer->Cancel(1, 13, "broken");
  CHECK(run->waits());
  CHECK_EQ(TakeAt(*buffer, 5), 10);
  CHECK(Return(*buffer, 5, 55).ok());
  CHECK_EQ(run->value, 55);
}

TEST(ANewOwnerFreesAllRunsOfTheOneBefore) {
  auto buffer = Open(2);
  auto run = Run(*buffer, 0, 10);
  CHECK(Begin(*buffer, 1)->ok());
  auto waiting = Begin(*buffer, 2);
  TakeAt(*buffer, 5);
  buffer->Resume(2);
  CHECK(run->outcome.code == Code::kCancelled);
  CHECK(waiting->outcome.code == Code::kCancelled);
  CHECK(!Return(*buffer, 5, 55).ok());
  CHECK(Begin(*buffer, 0, /*token=*/1)->outcome.code == Code::kCancelled);
  CHECK(Begin(*buffer, 0, /*token=*/2)->ok());
}

TEST(SettlingWaitsForTheRunsThatGotSomethingReturned) {
  auto buffer = Open(3);
  CHECK(Settle(*buffer)->ok());
  Run(*buffer, 0, 10);
  Run(*buffer, 1, 20);
  Run(*buffer, 2, 30);
  TakeAt(*buffer, 5);
  TakeAt(*buffer, 6);
  CHECK(Settle(*buffer)->ok());
  CHECK(Return(*buffer, 5, 55).ok());
  auto settle = Settle(*buffer);
  // What is returned later is not waited for.
  CHECK(Return(*buffer, 6, 66).ok());
  CHECK(settle->waits());
  buffer->EndRun(1, 0);
  CHECK(settle->ok());
  CHECK(Settle(*buffer)->waits());
}

TEST(CallsThatWaitEndWithTheirStep) {
  auto buffer = Open(1);
  auto awaiting = Run(*buffer, 0, 10);
  auto beginning = Begin(*buffer, 1);
  TakeAt(*buffer, 5);
  buffer->CancelCall(beginning->ticket);
  CHECK(beginning->outcome.code == Code::kCancelled);
  buffer->CancelCall(awaiting->ticket);
  CHECK(awaiting->outcome.code == Code::kCancelled);
  CHECK(Return(*buffer, 5, 55).ok());
  auto settle = Settle(*buffer);
  CHECK(settle->waits());
  buffer->CancelCall(settle->ticket);
  CHECK(settle->outcome.code == Code::kCancelled);
}

TEST(NobodyWaitsForTheProducersOfASessionThatDied) {
  for (bool begins : {true, false}) {
    auto buffer = Buffer::Create("clicks", 2);
    buffer->Resume(1, /*producers=*/2);
    auto awaiting = Run(*buffer, 0, 10);
    CHECK(Begin(*buffer, 1)->ok());
    auto beginning = Begin(*buffer, 2);
    TakeAt(*buffer, 5);
    buffer->CancelCall(begins ? beginning->ticket : awaiting->ticket);
    auto restart = std::make_shared<Call>();
    buffer->Restart(restart->ticket, 9, kLong, [&](const Outcome& how) { restart->End(how); });
    CHECK(restart->ok());
  }
}

// Producers in turn on threads of their own: items stay in order, each run gets what is its own, or
// nothing where the step trains nothing, and settling always ends.
TEST(ManyRunsAtOnceKeepTheirOrderAndGetTheirOwn) {
  constexpr int kProducers = 3, kItems = 3000;
  auto buffer = Open(kProducers);
  int next = 0;  // Only the run that has begun last counts.
  std::atomic<int> applied{0};
  std::vector<std::thread> producers;
  for (int thread = 0; thread < kProducers; ++thread) {
    producers.emplace_back([&, thread] {
      while (Begin(*buffer, thread)->Wait() == Code::kOk) {
        const int value = next++;
        PutOf(*buffer, thread, value);
        auto awaited = Await(*buffer, thread);
        const Code code = awaited->Wait();
        if (value >= kItems) continue;
        CHECK(code == (value % 5 == 0 ? Code::kCancelled : Code::kOk));
        if (code != Code::kOk) continue;
        CHECK_EQ(awaited->value, 2 * value);
        ++applied;
      }
    });
  }
  for (int step = 0; step < kItems; ++step) {
    auto taken = std::make_shared<Call>();
    buffer->Take(taken->ticket, step, kLong, [taken](const Outcome& outcome, Box box) {
      if (box != nullptr) taken->value = *box;
      taken->End(outcome);
    });
    CHECK(taken->Wait() == Code::kOk);
    CHECK_EQ(taken->value, step);
    if (step % 5 != 0) CHECK(Return(*buffer, step, 2 * step).ok());
    buffer->EndStep(step);
    if (step % 7 == 0) {
      CHECK(Settle(*buffer)->Wait() == Code::kOk);
      // All updates of the steps so far, of which every fifth has none.
      CHECK_EQ(applied.load(), step - step / 5);
    }
  }
  buffer->Cancel(1, 1, "stop");
  for (std::thread& each : producers) each.join();
  CHECK_EQ(applied.load(), kItems - kItems / 5);
}

TEST(ABufferThatGoesAwayEndsEveryWait) {
  auto buffer = Open(2);
  auto awaiting = Run(*buffer, 0, 10);
  CHECK(Begin(*buffer, 1)->ok());
  auto beginning = Begin(*buffer, 2);
  buffer->Shutdown();
  CHECK(awaiting->outcome.code == Code::kCancelled);
  CHECK(beginning->outcome.code == Code::kCancelled);
}

}  // namespace
}  // namespace workbench
