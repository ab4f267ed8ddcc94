// Producers at rest, and restarts: who is woken, who waits for whom, what is dropped.

#include "staging/buffer/stage_buffer.h"

#include "test/staging/buffer/calls.h"
#include "test/support/check.h"

namespace workbench {
namespace {

using namespace test;  // NOLINT

constexpr int64_t kInitializer = 99;  // A step.

// A buffer that token 1 owns with this many producers.
std::shared_ptr<Buffer> OpenFor(int64_t producers, int64_t capacity = 2) {
  auto buffer = Buffer::Create("clicks", capacity);
  buffer->Resume(1, producers);
  return buffer;
}

CallPtr Rest(Buffer& buffer, RestReason reason, CallPtr call = std::make_shared<Call>()) {
  buffer.Rest(call->ticket, 1, reason, "no table",
              [call](const Outcome& outcome) { call->End(outcome); });
  return call;
}

CallPtr Restart(Buffer& buffer, int64_t timeout_millis = kLong) {
  auto call = std::make_shared<Call>();
  buffer.Restart(call->ticket, kInitializer, timeout_millis,
                 [call](const Outcome& outcome) { call->End(outcome); });
  return call;
}

CallPtr TakeAhead(Buffer& buffer) {
  auto call = std::make_shared<Call>();
  buffer.Take(call->ticket, /*step=*/8, kLong,
              [call](const Outcome& outcome, Box) { call->End(outcome); }, /*ahead=*/true);
  return call;
}

TEST(TheEndComesWhenTheLastProducerRests) {
  auto buffer = OpenFor(2);
  Put(*buffer, 1);
  Rest(*buffer, RestReason::kEnded);
  CHECK_EQ(Take(*buffer)->value, 1);
  auto take = Take(*buffer);
  CHECK(take->waits());
  Rest(*buffer, RestReason::kEnded);
  CHECK(take->outcome.code == Code::kOutOfRange);
}

TEST(ATakeAfterTheEndAsksAgain) {
  auto buffer = OpenFor(2);
  auto first = Rest(*buffer, RestReason::kEnded);
  auto second = Rest(*buffer, RestReason::kEnded);
  auto take = Take(*buffer);
  CHECK(first->ok() && second->ok() && take->waits());
  Put(*buffer, 5);
  CHECK_EQ(take->value, 5);
  take = Take(*buffer);
  Rest(*buffer, RestReason::kEnded);
  CHECK(take->waits());
  Rest(*buffer, RestReason::kEnded);
  CHECK(take->outcome.code == Code::kOutOfRange);
}

TEST(ATakeAfterACloseDoesNotAsk) {
  auto buffer = OpenFor(1);
  auto rest = Rest(*buffer, RestReason::kClosed);
  CHECK(Take(*buffer)->outcome.code == Code::kOutOfRange);
  CHECK(rest->waits());
}

TEST(ARestartDropsAllAndWaitsForTheProducers) {
  auto buffer = OpenFor(2, /*capacity=*/1);
  Put(*buffer, 1);
  Put(*buffer, 2, 1)->Wait();  // Parked.
  auto waiting = Put(*buffer, 3, kLong, 1, 1);
  auto flush = Flush(*buffer);
  auto restart = Restart(*buffer);
  for (const CallPtr& call : {waiting, flush, Put(*buffer, 4)}) {
    CHECK(call->outcome.code == Code::kCancelled);
    CHECK_HAS(call->outcome.message, "of stage 'clicks' was cancelled: the stage begins again");
  }
  CHECK_EQ(buffer->Size(), 0);
  Rest(*buffer, RestReason::kReady);
  CHECK(restart->waits());
  auto last = Rest(*buffer, RestReason::kEnded);
  CHECK(restart->ok());
  auto take = Take(*buffer);
  CHECK(take->waits() && last->waits());
  buffer->EndRestart(kInitializer);
  CHECK(take->waits() && last->ok());
  Put(*buffer, 5);
  CHECK_EQ(take->value, 5);
}

TEST(ATakeThatWaitsDuringARestartGetsTheNewEpoch) {
  auto buffer = OpenFor(1);
  auto take = Take(*buffer);
  Restart(*buffer);
  auto rest = Rest(*buffer, RestReason::kEnded);
  CHECK(take->waits() && rest->waits());
  buffer->EndRestart(kInitializer);
  CHECK(rest->ok());
  Put(*buffer, 6);
  CHECK_EQ(take->value, 6);
}

TEST(ARestartEndsTheTakesOfOtherStagesAndOfItsOwnStep) {
  auto buffer = OpenFor(1);
  auto ahead = TakeAhead(*buffer);
  auto own = std::make_shared<Call>();
  buffer->Take(own->ticket, kInitializer, kLong,
               [own](const Outcome& outcome, Box) { own->End(outcome); });
  Restart(*buffer);
  Rest(*buffer, RestReason::kReady);
  CHECK(ahead->outcome.code == Code::kCancelled);
  CHECK(own->outcome.code == Code::kFailedPrecondition);
  CHECK_HAS(own->outcome.message, "run the initializer in a run of its own");
  CHECK(TakeAhead(*buffer)->outcome.code == Code::kCancelled);
  buffer->EndRestart(kInitializer);
  CHECK(TakeAhead(*buffer)->waits());
}

TEST(ARestartWithoutProducersDoesNotWait) {
  auto buffer = Buffer::Create("clicks", 1);
  CHECK(Restart(*buffer)->ok());
  buffer->Resume(1);
  Put(*buffer, 1);
  CHECK(Restart(*buffer)->ok());
  CHECK_EQ(buffer->Size(), 1);
  buffer = OpenFor(1);
  buffer->Cancel(1, 0, "stopped");
  CHECK(Restart(*buffer)->ok());
  buffer = OpenFor(1);
  Rest(*buffer, RestReason::kEnded);
  buffer->Cancel(1, 0, "stopped");
  CHECK(Restart(*buffer)->ok());
}

TEST(ARestartDoesNotWaitForADeadSession) {
  auto buffer = OpenFor(2, /*capacity=*/1);
  Put(*buffer, 1);
  auto put = Put(*buffer, 2);
  buffer->CancelCall(put->ticket);
  CHECK(Restart(*buffer)->ok());
}

TEST(ARestartThatIsCutShortMakesTakesFailUntilTheNext) {
  for (const bool times_out : {false, true}) {
    auto buffer = OpenFor(1);
    Put(*buffer, 1);
    auto take = Take(*buffer);
    auto waiting = Take(*buffer);
    auto restart = Restart(*buffer, times_out ? 1 : kLong);
    if (times_out) {
      CHECK(restart->Wait() == Code::kOk);
    } else {
      buffer->CancelCall(restart->ticket);
      CHECK(restart->outcome.code == Code::kCancelled);
    }
    buffer->EndRestart(kInitializer);
    CHECK_EQ(take->value, 1);
    for (const CallPtr& call : {waiting, Take(*buffer)}) {
      CHECK(call->Wait() == Code::kFailedPrecondition);
      CHECK_HAS(call->outcome.message, "run the initializer again");
    }
    CHECK(Put(*buffer, 2)->outcome.code == Code::kCancelled);
    auto rest = Rest(*buffer, RestReason::kReady);
    CHECK(Restart(*buffer)->ok());
    buffer->EndRestart(kInitializer);
    take = Take(*buffer);
    CHECK(rest->ok());
    Put(*buffer, 3);
    CHECK_EQ(take->value, 3);
  }
}

TEST(AStageThatReadsOneCutShortIsCutShortToo) {
  auto buffer = OpenFor(2);
  auto waiting = Take(*buffer);
  auto rest = Rest(*buffer, RestReason::kCutShort);
  for (const CallPtr& call : {waiting, Take(*buffer), TakeAhead(*buffer)}) {
    CHECK(call->outcome.code == Code::kFailedPrecondition);
    CHECK_HAS(call->outcome.message, "'clicks' finds nothing: its input was to be initialized");
  }
  auto other = Rest(*buffer, RestReason::kReady);
  CHECK(Take(*buffer)->outcome.code == Code::kFailedPrecondition);
  CHECK(rest->waits() && other->waits());
  CHECK(Restart(*buffer)->ok());
  auto take = Take(*buffer);
  buffer->EndRestart(kInitializer);
  CHECK(rest->ok() && other->ok());
  Put(*buffer, 3);
  CHECK_EQ(take->value, 3);
}

TEST(ACutShortStageOfTheEpochBeforeEndsWithTheRestart) {
  auto buffer = OpenFor(1);
  auto take = Take(*buffer);
  auto restart = Restart(*buffer);
  auto rest = Rest(*buffer, RestReason::kCutShort);
  CHECK(restart->ok() && take->waits());
  buffer->EndRestart(kInitializer);
  CHECK(rest->ok());
  Put(*buffer, 4);
  CHECK_EQ(take->value, 4);
}

TEST(AProducerThatIsNotReadyIsWokenByAStepOnly) {
  auto buffer = OpenFor(1);
  auto early = TakeAhead(*buffer);
  auto rest = Rest(*buffer, RestReason::kNotReady);
  for (const CallPtr& call : {early, TakeAhead(*buffer)}) {
    CHECK(call->outcome.code == Code::kFailedPrecondition);
    CHECK_HAS(call->outcome.message, "could not begin: no table");
  }
  CHECK(rest->waits());
  CHECK(Take(*buffer)->waits());
  CHECK(rest->ok());
}

TEST(ACancelEndsWhoRestsAndWhoWaitsForThem) {
  auto buffer = OpenFor(2);
  auto rest = Rest(*buffer, RestReason::kReady);
  auto restart = Restart(*buffer);
  buffer->Cancel(1, 0, "stopped");
  CHECK(rest->outcome.code == Code::kCancelled);
  CHECK(restart->ok());
}

TEST(AStopAfterTheEndLeavesTheEnd) {
  auto buffer = OpenFor(1);
  Put(*buffer, 1);
  auto rest = Rest(*buffer, RestReason::kEnded);
  buffer->Cancel(1, 0, "stopped");
  CHECK(rest->outcome.code == Code::kCancelled);
  CHECK_EQ(Take(*buffer)->value, 1);
  CHECK(Take(*buffer)->outcome.code == Code::kOutOfRange);
}

}  // namespace
}  // namespace workbench
