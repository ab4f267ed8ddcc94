#ifndef WORKBENCH_TRACING_BUFFER_EVENTS_H_
#define WORKBENCH_TRACING_BUFFER_EVENTS_H_

#include <time.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace workbench {

// Nanoseconds of the wall clock, the one that TensorFlow's step stats use.
inline int64_t WallNanos() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

// One item entering or leaving a buffer. Six int64 in this order, so that rows can be copied out.
struct BufferEvent {
  static constexpr int64_t kPut = 0;
  static constexpr int64_t kTake = 1;
  // Events were lost: `item` of them, the oldest. At most one, and the first of a drain.
  static constexpr int64_t kDropped = 2;
  static constexpr int kColumns = 6;

  int64_t kind;
  int64_t item;      // Sequence number, from 0, never used again in the buffer's life.
  int64_t who;       // The producing thread's number of a put, TensorFlow's step id of a take.
  int64_t start_ns;  // The call.
  int64_t end_ns;    // Put: admitted to the buffer. Take: handed over.
  int64_t size;      // Items in the buffer after it.
};
static_assert(sizeof(BufferEvent) == BufferEvent::kColumns * sizeof(int64_t), "rows are copied");

// The latest events of one buffer, while recording. Not synchronized: its owner's lock guards it.
class BufferEvents {
 public:
  static constexpr size_t kMost = size_t{1} << 20;

  explicit BufferEvents(size_t most = kMost) : most_(most) {}

  bool recording() const { return recording_; }

  void Add(const BufferEvent& event) {
    if (events_.size() == most_) {
      events_.pop_front();
      ++dropped_;
    }
    events_.push_back(event);
  }

  // Hands out what was recorded since the last drain, and switches recording on or off.
  std::vector<BufferEvent> Drain(bool record) {
    recording_ = record;
    std::vector<BufferEvent> rows;
    rows.reserve(events_.size() + 1);
    if (dropped_ > 0) rows.push_back({BufferEvent::kDropped, dropped_, -1, -1, -1, -1});
    rows.insert(rows.end(), events_.begin(), events_.end());
    std::deque<BufferEvent>().swap(events_);
    dropped_ = 0;
    return rows;
  }

 private:
  const size_t most_;
  bool recording_ = false;
  int64_t dropped_ = 0;
  std::deque<BufferEvent> events_;
};

}  // namespace workbench

#endif  // WORKBENCH_TRACING_BUFFER_EVENTS_H_
