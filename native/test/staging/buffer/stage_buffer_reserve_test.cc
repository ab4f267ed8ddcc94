// Puts that reserve: how far ahead of the takes one producer ever is.

#include "staging/buffer/stage_buffer.h"
#include "test/staging/buffer/calls.h"
#include "test/support/check.h"

namespace workbench {
namespace {

using namespace test;  // NOLINT

TEST(AReservingPutEndsWithTheTakeOfItsItem) {
  auto buffer = Open(1);
  auto put = ReservingPut(*buffer, 1);
  CHECK(put->waits());
  CHECK_EQ(buffer->Size(), 0);
  CHECK_EQ(Take(*buffer)->value, 1);
  CHECK(put->ok());
}

TEST(AReservingPutEndsAtOnceForATakeThatWaits) {
  auto buffer = Open(1);
  auto take = Take(*buffer);
  CHECK(ReservingPut(*buffer, 1)->ok());
  CHECK_EQ(take->value, 1);
}

// A producer begins item n when the put of n - 1 has ended: then n - capacity must be taken. It gets
// as far ahead as that allows, else capacity would be lost.
TEST(AReservingProducerIsNeverFurtherAheadThanTheCapacity) {
  for (int capacity : {1, 2, 3, 4}) {
    auto buffer = Open(capacity);
    int begun = 0;
    CallPtr put;
    for (int taken = 0; taken < 20; ++taken) {
      while (put == nullptr || put->ok()) put = ReservingPut(*buffer, begun++);
      CHECK_EQ(begun - taken, capacity);
      CHECK_EQ(Take(*buffer)->value, taken);
      CHECK(put->ok());
    }
  }
}

TEST(AReservingPutThatTimesOutStaysInLine) {
  auto buffer = Open(1);
  auto late = ReservingPut(*buffer, 1, /*timeout_millis=*/1);
  CHECK(late->Wait() == Code::kDeadlineExceeded);
  auto flush = Flush(*buffer);
  CHECK(flush->waits());
  CHECK_EQ(Take(*buffer)->value, 1);
  CHECK(flush->ok());
}

TEST(CloseDeliversWhatAReservingPutHasInLine) {
  auto buffer = Open(1);
  ReservingPut(*buffer, 1);
  buffer->Close(1);
  CHECK_EQ(Take(*buffer)->value, 1);
  CHECK(Take(*buffer)->outcome.code == Code::kOutOfRange);
}

TEST(CancelDropsWhatAReservingPutHasInLine) {
  auto buffer = Open(1);
  auto put = ReservingPut(*buffer, 1);
  buffer->Cancel(1, static_cast<int>(Code::kCancelled), "the session ended");
  CHECK(put->outcome.code == Code::kCancelled);
  CHECK(Take(*buffer)->outcome.code == Code::kCancelled);
}

TEST(ANewOwnerDropsWhatAReservingPutHasInLine) {
  auto buffer = Open(1);
  auto put = ReservingPut(*buffer, 1);
  buffer->Resume(2);
  CHECK(put->outcome.code == Code::kCancelled);
  CHECK(Take(*buffer)->waits());
}

}  // namespace
}  // namespace workbench
