// Order, room, timeouts and cancelled calls of a buffer with one owner.

#include "staging/buffer/stage_buffer.h"

#include <vector>

#include "test/staging/buffer/calls.h"
#include "test/support/check.h"

namespace workbench {
namespace {

using namespace test;  // NOLINT

TEST(ItemsComeOutAsTheyWentIn) {
  auto buffer = Open(3);
  for (int value : {5, 6, 7}) CHECK(Put(*buffer, value)->ok());
  CHECK_EQ(buffer->Size(), 3);
  for (int value : {5, 6, 7}) CHECK_EQ(Take(*buffer)->value, value);
  CHECK_EQ(buffer->Size(), 0);
}

TEST(PutWaitsForRoomInLine) {
  auto buffer = Open(1);
  CHECK(Put(*buffer, 1)->ok());
  auto second = Put(*buffer, 2);
  auto third = Put(*buffer, 3);
  CHECK(second->waits());
  CHECK_EQ(buffer->Size(), 1);
  CHECK_EQ(Take(*buffer)->value, 1);
  CHECK(second->ok());
  CHECK(third->waits());
  CHECK_EQ(Take(*buffer)->value, 2);
  CHECK_EQ(Take(*buffer)->value, 3);
  CHECK(third->ok());
}

TEST(TakeWaitsForAnItemFirstCallFirst) {
  auto buffer = Open(2);
  auto first = Take(*buffer);
  auto second = Take(*buffer);
  CHECK(first->waits());
  CHECK(Put(*buffer, 1)->ok());
  CHECK_EQ(first->value, 1);
  CHECK(second->waits());
  CHECK(Put(*buffer, 2)->ok());
  CHECK_EQ(second->value, 2);
  CHECK_EQ(buffer->Size(), 0);
}

TEST(ATimedOutPutStaysInLine) {
  auto buffer = Open(1);
  Put(*buffer, 1);
  auto late = Put(*buffer, 2, /*timeout_millis=*/1);
  CHECK(late->Wait() == Code::kDeadlineExceeded);
  for (const char* part : {"put of stage 'clicks'", "1 ms", "capacity 1", "the batch stays in line",
                           "nobody takes"}) {
    CHECK_HAS(late->outcome.message, part);
  }
  auto after = Put(*buffer, 3);
  CHECK_EQ(Take(*buffer)->value, 1);
  CHECK_EQ(Take(*buffer)->value, 2);
  CHECK(after->ok());
  CHECK_EQ(Take(*buffer)->value, 3);
  CHECK_EQ(late->ends, 1);
}

TEST(FlushWaitsForTheParkedRecordOfItsThread) {
  auto buffer = Open(1);
  CHECK(Flush(*buffer)->ok());
  Put(*buffer, 1);
  CHECK(Put(*buffer, 2, 1, 1, /*thread=*/4)->Wait() == Code::kDeadlineExceeded);
  CHECK(Flush(*buffer, kLong, 1, /*thread=*/5)->ok());
  auto impatient = Flush(*buffer, 1, 1, /*thread=*/4);
  CHECK(impatient->Wait() == Code::kDeadlineExceeded);
  CHECK_HAS(impatient->outcome.message, "flush of stage 'clicks'");
  auto patient = Flush(*buffer, kLong, 1, /*thread=*/4);
  CHECK(patient->waits());
  CHECK_EQ(Take(*buffer)->value, 1);
  CHECK(patient->ok());
  CHECK_EQ(Take(*buffer)->value, 2);
}

TEST(ACancelledPutLosesItsRecordAndAParkedOneDoesNot) {
  auto buffer = Open(1);
  Put(*buffer, 1);
  auto parked = Put(*buffer, 2, 1);
  parked->Wait();
  auto dead = Put(*buffer, 3);
  auto flush = Flush(*buffer);
  buffer->CancelCall(parked->ticket);
  buffer->CancelCall(dead->ticket);
  buffer->CancelCall(flush->ticket);
  CHECK(dead->outcome.code == Code::kCancelled);
  CHECK_HAS(dead->outcome.message, "put of stage 'clicks' was cancelled with its step");
  CHECK_HAS(flush->outcome.message, "flush of stage 'clicks' was cancelled with its step");
  CHECK_EQ(parked->ends, 1);
  CHECK_EQ(Take(*buffer)->value, 1);
  CHECK_EQ(Take(*buffer)->value, 2);
  CHECK(Take(*buffer)->waits());
}

TEST(ACancelledTakeTakesNothing) {
  auto buffer = Open(1);
  auto dead = Take(*buffer);
  buffer->CancelCall(dead->ticket);
  CHECK(dead->outcome.code == Code::kCancelled);
  CHECK_HAS(dead->outcome.message, "take of stage 'clicks' was cancelled with its step");
  Put(*buffer, 1);
  CHECK_EQ(buffer->Size(), 1);
}

TEST(ACallCancelledBeforeItComesInEndsAtOnce) {
  auto buffer = Open(1);
  auto put = std::make_shared<Call>(), take = std::make_shared<Call>();
  auto flush = std::make_shared<Call>();
  for (const CallPtr& call : {put, take, flush}) buffer->CancelCall(call->ticket);
  CHECK(Put(*buffer, 1, kLong, 1, 0, put)->outcome.code == Code::kCancelled);
  CHECK(Flush(*buffer, kLong, 1, 0, flush)->outcome.code == Code::kCancelled);
  CHECK(Take(*buffer, kLong, take)->outcome.code == Code::kCancelled);
  CHECK_EQ(buffer->Size(), 0);
}

TEST(ACallbackMayCallTheBuffer) {
  auto buffer = Open(1);
  std::vector<int> taken;
  std::function<void()> again = [&] {
    buffer->Take(std::make_shared<Ticket>(), 0, kLong, [&](const Outcome& outcome, Box box) {
      if (!outcome.ok()) return;
      taken.push_back(*box);
      again();
    });
  };
  again();
  for (int value : {1, 2, 3}) CHECK(Put(*buffer, value)->ok());
  CHECK((taken == std::vector<int>{1, 2, 3}));
  buffer->Close(1);
}

TEST(EventsTellTheWayOfEachItem) {
  auto buffer = Open(1);
  Put(*buffer, 1);
  CHECK(buffer->Drain(true).empty());
  const int64_t before = WallNanos();
  auto waiting = Put(*buffer, 2, kLong, 1, /*thread=*/3);
  Take(*buffer);
  Take(*buffer);
  auto early = Take(*buffer);
  Put(*buffer, 3);
  const int64_t after = WallNanos();
  const auto rows = buffer->Drain(false);
  CHECK_EQ(rows.size(), 5u);
  const int64_t expected[5][4] = {  // kind, item, who, size
      {BufferEvent::kTake, 0, 7, 0}, {BufferEvent::kPut, 1, 3, 1}, {BufferEvent::kTake, 1, 7, 0},
      {BufferEvent::kPut, 2, 0, 1},  {BufferEvent::kTake, 2, 7, 0}};
  for (int i = 0; i < 5; ++i) {
    CHECK_EQ(rows[i].kind, expected[i][0]);
    CHECK_EQ(rows[i].item, expected[i][1]);
    CHECK_EQ(rows[i].who, expected[i][2]);
    CHECK_EQ(rows[i].size, expected[i][3]);
    CHECK(before <= rows[i].start_ns && rows[i].start_ns <= rows[i].end_ns);
    CHECK(rows[i].end_ns <= after);
  }
  CHECK(rows[4].start_ns <= rows[3].start_ns);  // The take was there first.
  Put(*buffer, 4);
  CHECK(buffer->Drain(false).empty());
}

TEST(ACallThatWaitedBeforeRecordingKeepsItsStart) {
  auto buffer = Open(1);
  const int64_t before = WallNanos();
  auto early = Take(*buffer);
  const int64_t waiting = WallNanos();
  buffer->Drain(true);
  Put(*buffer, 1);
  const auto rows = buffer->Drain(false);
  CHECK_EQ(rows.size(), 2u);
  CHECK(before <= rows[1].start_ns && rows[1].start_ns <= waiting);
}

TEST(CapacityIsAtLeastOneAndNamedInAMismatch) {
  CHECK_EQ(Buffer::Create("clicks", 0)->capacity(), 1);
  const Outcome outcome = CapacityMismatch("clicks", 2, 5);
  CHECK(outcome.code == Code::kInvalidArgument);
  CHECK_HAS(outcome.message, "stage 'clicks' has a buffer of capacity 2");
  CHECK_HAS(outcome.message, "asks for capacity 5");
}

}  // namespace
}  // namespace workbench
