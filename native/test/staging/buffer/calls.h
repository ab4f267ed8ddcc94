#ifndef WORKBENCH_TEST_STAGING_BUFFER_CALLS_H_
#define WORKBENCH_TEST_STAGING_BUFFER_CALLS_H_

#include <memory>
#include <string>
#include <utility>

#include "staging/buffer/stage_buffer.h"
#include "test/support/check.h"
#include "test/support/latch.h"

namespace workbench::test {

// Movable only, as a record may be.
using Box = std::unique_ptr<int>;
using Buffer = StageBuffer<Box>;

constexpr int64_t kLong = 1000000;  // ms; no test waits for it.

// A call on a buffer and how it ended; counts how often it did.
struct Call {
  std::shared_ptr<Ticket> ticket = std::make_shared<Ticket>();
  int ends = 0;
  Outcome outcome;
  int value = -1;
  Latch latch{1};

  bool waits() const { return ends == 0; }
  bool ok() const { return ends == 1 && outcome.ok(); }
  // Waits for the end; only for calls that another thread ends.
  Code Wait() {
    latch.Wait();
    return outcome.code;
  }
  void End(const Outcome& how) {
    ++ends;
    outcome = how;
    latch.CountDown();
  }
};
using CallPtr = std::shared_ptr<Call>;

inline CallPtr Put(Buffer& buffer, int value, int64_t timeout_millis = kLong, int64_t token = 1,
                   int64_t thread = 0, CallPtr call = std::make_shared<Call>(),
                   bool reserve = false) {
  buffer.Put(call->ticket, token, thread, std::make_unique<int>(value), timeout_millis,
             [call](const Outcome& outcome) { call->End(outcome); }, reserve);
  return call;
}

inline CallPtr ReservingPut(Buffer& buffer, int value, int64_t timeout_millis = kLong) {
  return Put(buffer, value, timeout_millis, /*token=*/1, /*thread=*/0, std::make_shared<Call>(),
             /*reserve=*/true);
}

inline CallPtr Flush(Buffer& buffer, int64_t timeout_millis = kLong, int64_t token = 1,
                     int64_t thread = 0, CallPtr call = std::make_shared<Call>()) {
  buffer.Flush(call->ticket, token, thread, timeout_millis,
               [call](const Outcome& outcome) { call->End(outcome); });
  return call;
}

inline CallPtr Take(Buffer& buffer, int64_t start_timeout_millis = kLong,
                    CallPtr call = std::make_shared<Call>()) {
  buffer.Take(call->ticket, /*step=*/7, start_timeout_millis,
              [call](const Outcome& outcome, Box box) {
                CHECK_EQ(outcome.ok(), box != nullptr);
                if (box != nullptr) call->value = *box;
                call->End(outcome);
              });
  return call;
}

// A buffer that token 1 owns.
inline std::shared_ptr<Buffer> Open(int64_t capacity) {
  auto buffer = Buffer::Create("clicks", capacity);
  buffer->Resume(1);
  return buffer;
}

}  // namespace workbench::test

#endif  // WORKBENCH_TEST_STAGING_BUFFER_CALLS_H_
