#include "tracing/buffer_events.h"

#include "test/support/check.h"

namespace workbench {
namespace {

TEST(DrainHandsOutOnceAndSwitches) {
  BufferEvents events;
  CHECK(!events.recording());
  CHECK(events.Drain(true).empty());
  CHECK(events.recording());
  events.Add({BufferEvent::kPut, 0, 2, 10, 20, 1});
  const auto rows = events.Drain(false);
  CHECK_EQ(rows.size(), 1u);
  CHECK_EQ(rows[0].who, 2);
  CHECK_EQ(rows[0].end_ns, 20);
  CHECK(!events.recording());
  CHECK(events.Drain(false).empty());
}

TEST(TheOldestGoAndAreCounted) {
  BufferEvents events(2);
  events.Drain(true);
  for (int64_t item = 0; item < 5; ++item) events.Add({BufferEvent::kPut, item, 0, 0, 0, 1});
  const auto rows = events.Drain(true);
  CHECK_EQ(rows.size(), 3u);
  CHECK_EQ(rows[0].kind, BufferEvent::kDropped);
  CHECK_EQ(rows[0].item, 3);
  CHECK_EQ(rows[1].item, 3);
  CHECK_EQ(rows[2].item, 4);
  CHECK(events.Drain(true).empty());
}

TEST(TheClockIsTheWallClock) {
  timespec before;
  clock_gettime(CLOCK_REALTIME, &before);
  CHECK(WallNanos() >= int64_t{before.tv_sec} * 1000000000 + before.tv_nsec);
}

}  // namespace
}  // namespace workbench
