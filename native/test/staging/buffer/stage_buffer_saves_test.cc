// Saves and restores of a stage's input, and the runs of one session.

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "staging/buffer/stage_buffer.h"
#include "test/staging/buffer/calls.h"
#include "test/support/check.h"

namespace workbench {
namespace {

using namespace test;  // NOLINT

constexpr int64_t kSave = 31;  // A step.
constexpr int64_t kInitializer = 32;
// The next runs of the session that owns the buffer by token 1.
constexpr int64_t kSecond = (int64_t{1} << kFamilyBits) + 1;
constexpr int64_t kThird = (int64_t{2} << kFamilyBits) + 1;

std::shared_ptr<Buffer> OpenFor(int64_t producers, int64_t capacity) {
  auto buffer = Buffer::Create("clicks", capacity);
  buffer->Resume(1, producers);
  return buffer;
}

CallPtr Hold(Buffer& buffer, int64_t timeout_millis = kLong) {
  auto call = std::make_shared<Call>();
  buffer.Hold(call->ticket, kSave, timeout_millis,
              [call](const Outcome& outcome) { call->End(outcome); });
  return call;
}

CallPtr Rest(Buffer& buffer, RestReason reason) {
  auto call = std::make_shared<Call>();
  buffer.Rest(call->ticket, 1, reason, "", [call](const Outcome& outcome) { call->End(outcome); });
  return call;
}

CallPtr Restart(Buffer& buffer) {
  auto call = std::make_shared<Call>();
  buffer.Restart(call->ticket, kInitializer, kLong,
                 [call](const Outcome& outcome) { call->End(outcome); });
  return call;
}

std::vector<int> Held(const Buffer& buffer) {
  std::vector<int> values;
  buffer.VisitHeld([&values](const Box& box) { values.push_back(*box); });
  return values;
}

std::vector<Box> Boxes(std::initializer_list<int> values) {
  std::vector<Box> boxes;
  for (int value : values) boxes.push_back(std::make_unique<int>(value));
  return boxes;
}

TEST(AHoldWaitsForTheProducerThatReads) {
  auto buffer = OpenFor(2, 2);
  Put(*buffer, 1);
  auto rest = Rest(*buffer, RestReason::kEnded);
  auto hold = Hold(*buffer);
  CHECK(hold->waits());
  auto put = Put(*buffer, 2, kLong, 1, 1);
  CHECK(hold->ok());
  CHECK(put->waits());
  CHECK(Held(*buffer) == std::vector<int>({1, 2}));
  buffer->Release(kSave);
  CHECK(put->ok());
  CHECK(rest->waits());
}

TEST(AProducerThatWaitsForRoomIsHeldThere) {
  auto buffer = OpenFor(1, 1);
  Put(*buffer, 1);
  auto put = Put(*buffer, 2);
  CHECK(Hold(*buffer)->ok());
  CHECK(Held(*buffer) == std::vector<int>({1, 2}));
  CHECK_EQ(Take(*buffer)->value, 1);
  CHECK(put->waits());
  CHECK_EQ(Take(*buffer)->value, 2);
  auto take = Take(*buffer);
  CHECK(take->waits());
  buffer->Release(kSave);
  CHECK(put->ok());
  CHECK(Put(*buffer, 3)->ok());
  CHECK_EQ(take->value, 3);
}

TEST(ATakeWakesNobodyWhileASaveHoldsThem) {
  auto buffer = OpenFor(1, 1);
  auto rest = Rest(*buffer, RestReason::kReady);
  CHECK(Hold(*buffer)->ok());
  auto take = Take(*buffer);
  CHECK(rest->waits());
  buffer->Release(kSave);
  CHECK(rest->ok());
  CHECK(take->waits());
}

CallPtr TakeIn(Buffer& buffer, int64_t step) {
  auto call = std::make_shared<Call>();
  buffer.Take(call->ticket, step, kLong, [call](const Outcome& outcome, Box box) {
    if (box != nullptr) call->value = *box;
    call->End(outcome);
  });
  return call;
}

TEST(TheStepThatSavesMayTakeOnceItHasTheState) {
  for (const bool late : {false, true}) {
    auto buffer = OpenFor(1, 1);
    auto rest = Rest(*buffer, RestReason::kReady);
    CHECK(Hold(*buffer)->ok());
    if (late) buffer->EndHold(kSave);
    auto take = TakeIn(*buffer, kSave);
    CHECK_EQ(rest->waits(), !late);
    if (!late) buffer->EndHold(kSave);
    CHECK(rest->ok());
    CHECK(Put(*buffer, 1)->ok());
    CHECK_EQ(take->value, 1);
  }
}

TEST(TwoSavesOfOneStepSeeTheSame) {
  auto buffer = OpenFor(1, 2);
  CHECK(Hold(*buffer)->waits());
  auto put = Put(*buffer, 1);
  buffer->EndHold(kSave);
  CHECK(Hold(*buffer)->ok());
  CHECK(put->waits());
  buffer->EndHold(kSave);
  CHECK(put->waits());
  buffer->Release(kSave);
  CHECK(put->ok());
}

TEST(AHoldThatTakesTooLongSaysSo) {
  auto buffer = OpenFor(1, 1);
  auto hold = Hold(*buffer, 1);
  CHECK(hold->Wait() == Code::kDeadlineExceeded);
  CHECK_HAS(hold->outcome.message, "of stage 'clicks' was not saved: its producers did not finish");
  buffer->Release(kSave);
  CHECK(Put(*buffer, 1)->ok());
}

TEST(AHoldEndsWithItsStepAndWithTheStage) {
  auto buffer = OpenFor(1, 1);
  auto cancelled = Hold(*buffer);
  buffer->CancelCall(cancelled->ticket);
  CHECK(cancelled->outcome.code == Code::kCancelled);
  auto hold = Hold(*buffer);
  buffer->Cancel(1, 0, "stopped");
  CHECK(hold->ok());
}

TEST(AStopFreesTheProducersThatASaveHolds) {
  auto buffer = OpenFor(1, 2);
  CHECK(Hold(*buffer)->waits());
  auto put = Put(*buffer, 1);
  buffer->Cancel(1, 0, "stopped");
  CHECK(put->ok());
  CHECK(Held(*buffer) == std::vector<int>({1}));
}

TEST(ARestartEndsTheProducersThatASaveHolds) {
  auto buffer = OpenFor(1, 2);
  CHECK(Hold(*buffer)->waits());
  auto put = Put(*buffer, 1);
  auto restart = Restart(*buffer);
  CHECK(put->outcome.code == Code::kCancelled);
  Rest(*buffer, RestReason::kReady);
  CHECK(restart->ok());
  CHECK(Held(*buffer).empty());
}

TEST(NoTrailingUpdateIsLostInASave) {
  auto buffer = OpenFor(1, 2);
  auto begun = std::make_shared<Call>();
  buffer->Begin(begun->ticket, 1, 0, [begun](const Outcome& outcome) { begun->End(outcome); });
  auto hold = Hold(*buffer);
  CHECK(hold->outcome.code == Code::kFailedPrecondition);
  CHECK_HAS(hold->outcome.message, "updates of its batches trail");
}

TEST(WhatARestoreBringsComesFirst) {
  auto buffer = Buffer::Create("clicks", 1);
  // Each of two inputs of a stage has what the stage has read ahead in its state.
  for (int i = 0; i < 2; ++i) buffer->Preload(Boxes({5, 6}));
  CHECK(Held(*buffer) == std::vector<int>({5, 6}));
  buffer->Resume(1, 1);
  CHECK_EQ(buffer->Size(), 2);
  auto put = Put(*buffer, 7);
  CHECK(put->waits());
  for (int value : {5, 6, 7}) CHECK_EQ(Take(*buffer)->value, value);
  CHECK(put->ok());
}

TEST(ARestoreInARunningSessionGivesItsItemsAtOnce) {
  auto buffer = OpenFor(1, 2);
  Put(*buffer, 1);
  auto restart = Restart(*buffer);
  auto rest = Rest(*buffer, RestReason::kReady);
  CHECK(restart->ok());
  for (int i = 0; i < 2; ++i) buffer->Preload(Boxes({5}));
  buffer->EndRestart(kInitializer);
  CHECK_EQ(Take(*buffer)->value, 5);
  auto take = Take(*buffer);
  CHECK(rest->ok());
  Put(*buffer, 6);
  CHECK_EQ(take->value, 6);
}

TEST(AnInitializerDropsWhatARestoreBroughtBefore) {
  auto buffer = Buffer::Create("clicks", 1);
  buffer->Preload(Boxes({5, 6}));
  CHECK(Restart(*buffer)->ok());
  buffer->Resume(1, 1);
  CHECK_EQ(buffer->Size(), 0);
}

TEST(TheNextRunOfASessionKeepsWhatTheLastOnePut) {
  auto buffer = OpenFor(2, 1);
  Put(*buffer, 1);
  auto waiting = Put(*buffer, 2);
  buffer->Cancel(1, 0, "stopped");
  CHECK(waiting->outcome.code == Code::kCancelled);
  auto late = Put(*buffer, 3, kLong, 1, 1);
  CHECK(late->outcome.code == Code::kCancelled);
  buffer->Resume(kSecond, 2);
  auto own = Put(*buffer, 5, kLong, kSecond);
  CHECK_EQ(Take(*buffer)->value, 1);
  // It still read when the next run began.
  CHECK(Put(*buffer, 4, kLong, 1)->outcome.code == Code::kCancelled);
  for (int value : {2, 3, 5, 4}) CHECK_EQ(Take(*buffer)->value, value);
  CHECK(own->ok());
}

TEST(AStepTakesWhatAStoppedStageHasLeft) {
  auto buffer = OpenFor(1, 1);
  Put(*buffer, 1);
  auto waiting = Put(*buffer, 2);
  buffer->Cancel(1, 0, "stopped");
  CHECK_EQ(Take(*buffer)->value, 1);
  CHECK_EQ(Take(*buffer)->value, 2);
  CHECK_EQ(Take(*buffer)->outcome.message, "stopped");
}

TEST(APlainStopDropsWhatIsInLine) {
  auto buffer = OpenFor(1, 1);
  Put(*buffer, 1);
  Put(*buffer, 2);
  buffer->Cancel(1, 1, "stopped");
  Put(*buffer, 3);
  CHECK_EQ(Take(*buffer)->value, 1);
  CHECK_EQ(Take(*buffer)->outcome.message, "stopped");
}

TEST(AnotherSessionGetsNothingOfAStoppedOne) {
  auto buffer = OpenFor(1, 1);
  Put(*buffer, 1);
  Put(*buffer, 2);
  buffer->Cancel(1, 0, "stopped");
  buffer->Resume(2, 1);
  Put(*buffer, 3);
  CHECK(Held(*buffer).empty());
}

TEST(AnInitializerBetweenTwoRunsDropsWhatTheFirstOneRead) {
  auto buffer = OpenFor(2, 1);
  Put(*buffer, 1);
  Put(*buffer, 2);
  buffer->Cancel(1, 0, "stopped");
  CHECK(Restart(*buffer)->ok());
  buffer->EndRestart(kInitializer);
  CHECK(Held(*buffer).empty());
  Put(*buffer, 3, kLong, 1, 1);
  buffer->Resume(kSecond, 2);
  Put(*buffer, 4, kLong, 1, 1);
  CHECK(Held(*buffer).empty());
  CHECK(Put(*buffer, 5, kLong, kSecond)->ok());
  buffer->Cancel(kSecond, 0, "stopped");
  buffer->Resume(kThird, 2);
  CHECK_EQ(Take(*buffer)->value, 5);
}

TEST(AfterTheEndTheNextRunTakesWhatIsLeft) {
  auto buffer = OpenFor(1, 2);
  Put(*buffer, 1);
  Rest(*buffer, RestReason::kEnded);
  buffer->Cancel(1, 0, "stopped");
  buffer->Resume(kSecond, 1);
  CHECK_EQ(Take(*buffer)->value, 1);
  CHECK(Take(*buffer)->waits());
}

TEST(NoItemIsLostOverManyRunsAndSaves) {
  constexpr int kProducers = 3, kItems = 3000;
  auto buffer = OpenFor(0, 2);
  std::atomic<int64_t> token{1};
  std::atomic<int> left{kProducers * kItems};
  std::mutex mu;
  std::vector<int> taken;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kProducers; ++thread) {
    threads.emplace_back([&, thread] {
      // A put that is refused by a stop has left its item all the same.
      for (int i = 0; i < kItems; ++i) {
        Put(*buffer, thread * kItems + i, kLong, token, thread)->Wait();
      }
    });
  }
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (left > 0) {
        auto call = Take(*buffer);
        if (call->Wait() != Code::kOk) continue;
        --left;
        std::lock_guard<std::mutex> lock(mu);
        taken.push_back(call->value);
      }
    });
  }
  while (left > 0) {
    Hold(*buffer)->Wait();
    Held(*buffer);
    buffer->EndHold(kSave);
    buffer->Release(kSave);
    buffer->Cancel(token, 0, "stopped");
    const int64_t next = token + (int64_t{1} << kFamilyBits);
    buffer->Resume(next);
    token = next;
    std::this_thread::yield();
  }
  buffer->Cancel(token, 0, "stopped");
  for (std::thread& thread : threads) thread.join();
  std::vector<int> all(kProducers * kItems);
  std::iota(all.begin(), all.end(), 0);
  std::sort(taken.begin(), taken.end());
  CHECK(taken == all);
}

}  // namespace
}  // namespace workbench
