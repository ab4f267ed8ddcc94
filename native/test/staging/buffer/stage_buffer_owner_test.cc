// Life cycle of a buffer: owners, resume, cancel, close, destruction.

#include "staging/buffer/stage_buffer.h"

#include "test/staging/buffer/calls.h"
#include "test/support/check.h"

namespace workbench {
namespace {

using namespace test;  // NOLINT

TEST(ATakeWithoutAnyOwnerSaysWhatIsMissing) {
  auto buffer = Buffer::Create("clicks", 1);
  auto take = Take(*buffer, /*start_timeout_millis=*/1);
  CHECK(take->Wait() == Code::kFailedPrecondition);
  for (const char* part : {"take of stage 'clicks'", "1 ms", "no prefetch runner was ever started",
                           "add workbench's make_prefetch_hook() to the session's hooks"}) {
    CHECK_HAS(take->outcome.message, part);
  }
}

TEST(ATakeThatCameBeforeTheFirstOwnerIsServed) {
  auto buffer = Buffer::Create("clicks", 1);
  auto take = Take(*buffer, /*start_timeout_millis=*/kLong);
  buffer->Resume(1);
  CHECK(take->waits());
  Put(*buffer, 1);
  CHECK_EQ(take->value, 1);
}

TEST(TheStartTimeoutIsLiftedByTheFirstOwner) {
  auto deadlines = DeadlineThread::Acquire();
  auto buffer = Buffer::Create("clicks", 1);
  auto take = Take(*buffer, kLong);
  CHECK_EQ(deadlines->pending(), 1u);
  buffer->Resume(1);
  CHECK_EQ(deadlines->pending(), 0u);
  CHECK(take->waits());
  Put(*buffer, 1);
  CHECK_EQ(take->value, 1);
}

TEST(PutAndFlushNeedAnOwner) {
  auto buffer = Buffer::Create("clicks", 1);
  auto put = Put(*buffer, 1);
  CHECK(put->outcome.code == Code::kFailedPrecondition);
  CHECK_HAS(put->outcome.message, "put of stage 'clicks' before any resume");
  CHECK(Flush(*buffer)->outcome.code == Code::kFailedPrecondition);
}

TEST(ANewOwnerStartsFromNothing) {
  auto buffer = Open(1);
  Put(*buffer, 1);
  Put(*buffer, 2, 1)->Wait();  // Parked.
  auto waiting = Put(*buffer, 3);
  auto flush = Flush(*buffer);
  buffer->Resume(2);
  for (const CallPtr& call : {waiting, flush}) {
    CHECK(call->outcome.code == Code::kCancelled);
    CHECK_HAS(call->outcome.message, "of stage 'clicks' was cancelled: a newer session owns");
  }
  CHECK_EQ(buffer->Size(), 0);
  auto take = Take(*buffer);
  CHECK(take->waits());
  CHECK(Put(*buffer, 9, kLong, 2)->ok());
  CHECK_EQ(take->value, 9);
}

TEST(ATakeOfADeadSessionGetsNoItemOfTheNext) {
  auto buffer = Open(1);
  auto dead = Take(*buffer);
  buffer->Resume(2);
  CHECK(dead->outcome.code == Code::kCancelled);
  CHECK_HAS(dead->outcome.message, "take of stage 'clicks' was cancelled: a newer session owns");
  Put(*buffer, 9, kLong, 2);
  CHECK_EQ(Take(*buffer)->value, 9);
}

TEST(AnEarlierOwnerDoesNoHarm) {
  auto buffer = Open(1);
  buffer->Resume(2);
  auto put = Put(*buffer, 1, kLong, /*token=*/1);
  CHECK(put->outcome.code == Code::kCancelled);
  CHECK_HAS(put->outcome.message, "put of stage 'clicks' was cancelled: a newer session owns");
  CHECK(Flush(*buffer, kLong, /*token=*/1)->outcome.code == Code::kCancelled);
  buffer->Cancel(1, 13, "late");
  buffer->Close(1);
  CHECK(Put(*buffer, 2, kLong, 2)->ok());
  CHECK_EQ(Take(*buffer)->value, 2);
  CHECK(Take(*buffer)->waits());
}

TEST(ResumeByTheOwnerKeepsItems) {
  auto buffer = Open(1);
  Put(*buffer, 1);
  auto waiting = Put(*buffer, 2);
  buffer->Close(1);
  buffer->Resume(1);
  CHECK(waiting->waits());
  CHECK_EQ(Take(*buffer)->value, 1);
  CHECK_EQ(Take(*buffer)->value, 2);
  CHECK(Take(*buffer)->waits());
  CHECK(Put(*buffer, 3)->ok());
}

TEST(CloseDeliversEverythingAccepted) {
  auto buffer = Open(1);
  Put(*buffer, 1);
  Put(*buffer, 2, 1)->Wait();  // Parked.
  auto waiting = Put(*buffer, 3);
  auto flush = Flush(*buffer);
  buffer->Close(1);
  auto refused = Put(*buffer, 4);
  CHECK(refused->outcome.code == Code::kCancelled);
  CHECK_HAS(refused->outcome.message, "put of stage 'clicks' was cancelled: the stage is closed");
  CHECK(waiting->waits() && flush->waits());
  for (int value : {1, 2, 3}) CHECK_EQ(Take(*buffer)->value, value);
  CHECK(waiting->ok() && flush->ok());
  for (int i = 0; i < 2; ++i) {
    auto end = Take(*buffer);
    CHECK(end->outcome.code == Code::kOutOfRange);
    CHECK_HAS(end->outcome.message, "stage 'clicks' has ended");
  }
}

TEST(CloseEndsWhoWaitsForAnItem) {
  auto buffer = Open(1);
  auto take = Take(*buffer);
  buffer->Close(1);
  CHECK(take->outcome.code == Code::kOutOfRange);
}

TEST(CancelDrainsTheBufferThenGivesTheError) {
  auto buffer = Open(1);
  Put(*buffer, 1);
  auto waiting = Put(*buffer, 2);
  auto flush = Flush(*buffer);
  buffer->Cancel(1, 13, "bad batch 17");
  CHECK(waiting->outcome.code == Code::kCancelled);
  CHECK_HAS(waiting->outcome.message, "put of stage 'clicks' was cancelled: bad batch 17");
  CHECK_HAS(flush->outcome.message, "flush of stage 'clicks' was cancelled: bad batch 17");
  CHECK_HAS(Put(*buffer, 3)->outcome.message, "bad batch 17");
  for (int value : {1, 2, 3}) CHECK_EQ(Take(*buffer)->value, value);
  auto take = Take(*buffer);
  CHECK_EQ(static_cast<int>(take->outcome.code), 13);
  CHECK_EQ(take->outcome.message, "bad batch 17");
  buffer->Cancel(1, 5, "a second error");
  buffer->Close(1);
  CHECK_EQ(Take(*buffer)->outcome.message, "bad batch 17");
}

TEST(AStopEndsWaitingTakesAsCancelled) {
  for (int code : {0, 1}) {
    auto buffer = Open(1);
    auto take = Take(*buffer);
    buffer->Cancel(1, code, "stopped");
    CHECK(take->outcome.code == Code::kCancelled);
    CHECK_EQ(take->outcome.message, "stopped");
  }
}

TEST(ACancelAfterTheEndOfTheEpochChangesNothing) {
  auto buffer = Open(1);
  Put(*buffer, 1);
  buffer->Close(1);
  buffer->Cancel(1, 1, "stopped");
  CHECK_EQ(Take(*buffer)->value, 1);
  CHECK(Take(*buffer)->outcome.code == Code::kOutOfRange);
}

TEST(ACancelAfterCloseThatLosesARecordSaysSo) {
  auto buffer = Open(1);
  Put(*buffer, 1);
  auto lost = Put(*buffer, 2);
  buffer->Close(1);
  buffer->Cancel(1, 1, "stopped");
  CHECK(lost->outcome.code == Code::kCancelled);
  CHECK_EQ(Take(*buffer)->value, 1);
  CHECK(Take(*buffer)->outcome.code == Code::kCancelled);
}

TEST(ACancelDoesNotOutliveItsOwner) {
  auto buffer = Open(1);
  Put(*buffer, 1);
  buffer->Cancel(1, 13, "bad batch");
  buffer->Resume(2);
  auto take = Take(*buffer);
  CHECK(take->waits());
  Put(*buffer, 2, kLong, 2);
  CHECK_EQ(take->value, 2);
  buffer->Close(2);
  buffer->Resume(3);
  buffer->Cancel(3, 1, "stopped");
  CHECK(Take(*buffer)->outcome.code == Code::kCancelled);
}

TEST(WhoWaitsEndsWithTheBuffer) {
  auto buffer = Open(1);
  auto take = Take(*buffer);
  Put(*buffer, 1);
  Put(*buffer, 2);
  Put(*buffer, 3, 1)->Wait();
  auto put = Put(*buffer, 4);
  auto flush = Flush(*buffer);
  auto other = Open(1);
  auto waiting = Take(*other);
  buffer.reset();
  other.reset();
  CHECK_EQ(take->value, 1);
  // The deadline thread may hold the buffer for a moment yet, from the put that timed out.
  for (const CallPtr& call : {put, flush, waiting}) {
    CHECK(call->Wait() == Code::kCancelled);
    CHECK_EQ(call->ends, 1);
    CHECK_HAS(call->outcome.message, "of stage 'clicks' was cancelled: its buffer was removed");
  }
}

TEST(NothingWaitsAfterShutdown) {
  auto buffer = Open(1);
  buffer->Shutdown();
  CHECK(Put(*buffer, 1)->outcome.code == Code::kCancelled);
  CHECK(Take(*buffer)->outcome.code == Code::kCancelled);
  auto unowned = Buffer::Create("clicks", 1);
  unowned->Shutdown();
  CHECK(Take(*unowned)->outcome.code == Code::kCancelled);
}

TEST(ACallbackMayDropTheLastOwner) {
  auto buffer = Open(1);
  Buffer* raw = buffer.get();
  bool ended = false;
  // The buffer goes in the callback that its own deadline thread runs.
  Latch latch(1);
  Put(*raw, 1);
  raw->Put(std::make_shared<Ticket>(), 1, 0, std::make_unique<int>(2), 1,
           [&, held = std::move(buffer)](const Outcome& outcome) mutable {
             ended = outcome.code == Code::kDeadlineExceeded;
             held.reset();
             latch.CountDown();
           });
  latch.Wait();
  CHECK(ended);
}

}  // namespace
}  // namespace workbench
