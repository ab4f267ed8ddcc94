#ifndef WORKBENCH_TRACING_TICKS_H_
#define WORKBENCH_TRACING_TICKS_H_

#include <time.h>

#include <cstdint>

#include "tracing/buffer_events.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace workbench {

// The cheapest clock there is, in units of its own; a Timebase turns it into nanoseconds.
inline uint64_t Ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return uint64_t(now.tv_sec) * 1000000000 + now.tv_nsec;
#endif
}

// One moment on both clocks.
struct Moment {
  uint64_t ticks;
  int64_t wall_ns;

  // The narrowest of a few readings: one that was interrupted is seen by its width.
  static Moment Now() {
    Moment best{};
    uint64_t width = ~uint64_t{0};
    for (int i = 0; i < 8; ++i) {
      const uint64_t before = Ticks();
      const int64_t wall_ns = WallNanos();
      const uint64_t after = Ticks();
      if (after - before < width) {
        width = after - before;
        best = {before + width / 2, wall_ns};
      }
    }
    return best;
  }
};

// Ticks to nanoseconds of the wall clock, by two moments that lie apart.
class Timebase {
 public:
  Timebase(const Moment& first, const Moment& second)
      : first_(first),
        ns_per_tick_(second.ticks > first.ticks
                         ? double(second.wall_ns - first.wall_ns) / double(second.ticks - first.ticks)
                         : 1.0) {}

  int64_t WallNs(uint64_t ticks) const {
    return first_.wall_ns + int64_t(double(int64_t(ticks - first_.ticks)) * ns_per_tick_);
  }
  double ns_per_tick() const { return ns_per_tick_; }

 private:
  Moment first_;
  double ns_per_tick_;
};

// Of this machine, measured once: good to a thousandth.
inline double NsPerTick() {
  static const double ns_per_tick = [] {
    const Moment first = Moment::Now();
    while (WallNanos() - first.wall_ns < 2'000'000) {
    }
    return Timebase(first, Moment::Now()).ns_per_tick();
  }();
  return ns_per_tick;
}

}  // namespace workbench

#endif  // WORKBENCH_TRACING_TICKS_H_
