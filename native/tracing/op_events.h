#ifndef WORKBENCH_TRACING_OP_EVENTS_H_
#define WORKBENCH_TRACING_OP_EVENTS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "threading/guarded_by.h"
#include "tracing/ticks.h"

namespace workbench {

// One run of one node. Times in ticks; `run` and `node` are numbers that OpEvents returned.
struct OpEvent {
  uint64_t scheduled;
  uint64_t start;
  uint64_t end;
  uint32_t node;
  uint32_t run;
  // Memory of its outputs, in lines: what it made, and what it passed on of its inputs.
  uint32_t made = 0;
  uint32_t passed = 0;

  // Allocators align tensors to it, so no memory is lost where it is the unit.
  static constexpr int64_t kLineBytes = 64;
  // Lines that hold these bytes; more than 256 GB count as 256 GB.
  static uint32_t Lines(int64_t bytes) {
    const int64_t lines = (bytes + kLineBytes - 1) / kLineBytes;
    return uint32_t(std::min<int64_t>(lines, std::numeric_limits<uint32_t>::max()));
  }
};
static_assert(sizeof(OpEvent) == 40, "a recording writes little");

// What a node is called in a trace.
struct TracedNode {
  std::string name;
  std::string op;
  std::string device;
};

// `target` runs after `source`, by data or by a control edge.
struct TracedEdge {
  uint32_t source;
  uint32_t target;
  bool control;
};

// One step of one executor; `end` is 0 until the step has ended.
struct TracedRun {
  int64_t step;      // TensorFlow's step id.
  int64_t thread;    // The calling thread's id of the operating system.
  uint64_t start;    // Ticks.
  uint64_t end;      // Ticks.
  int32_t executor;  // The executor's number.
  bool root;         // A client called it, not a function call within another step.
};

// An event as callers get it, in nanoseconds of the wall clock.
struct DrainedOp {
  int64_t scheduled_ns, start_ns, end_ns, step, made_bytes, passed_bytes;
  int32_t node, thread;
};

struct DrainedRun {
  int64_t start_ns, end_ns, step, thread;
  int32_t executor;
  bool root;
};

// The events of all executors of the process. Every thread writes to a log of its own, without a
// lock; the logs can be drained meanwhile. Lock order: drain_, then mu_.
class OpEvents {
 public:
  // Most memory of events; further events are dropped and counted as lost.
  static constexpr int64_t kMostBytes = int64_t{256} << 20;

  static OpEvents& Get();

  // Whether steps that begin now are recorded; a step keeps this from its begin to its end.
  bool recording() const { return recording_.load(std::memory_order_relaxed); }
  // Switching it on drops what an earlier recording left.
  void Record(bool on);

  // Numbers nodes, and returns the first number; they stay until the process ends. The edges lie
  // between these nodes, which they count from 0.
  uint32_t AddNodes(std::vector<TracedNode> nodes, std::vector<TracedEdge> edges = {});
  // A run is a root if no other run of its step has begun and not ended.
  uint32_t BeginRun(int64_t step, int32_t executor);
  void EndRun(uint32_t run);

  // Adds an event to this thread's log.
  static void Add(const OpEvent& event) {
    Log* log = log_;
    if (__builtin_expect(log == nullptr || log->next == log->end, 0)) {
      AddSlowly(event);
      return;
    }
    *log->next++ = event;
    log->chunk->count.store(log->next - log->chunk->events, std::memory_order_release);
  }

  // How many events can be taken.
  int64_t ready() const;
  int64_t lost() const { return lost_.load(std::memory_order_relaxed); }
  // Moves at most `most` events out, those of each thread in their order.
  std::vector<DrainedOp> TakeOps(int64_t most);
  // Moves the ended runs out.
  std::vector<DrainedRun> TakeRuns(int64_t most);
  int64_t ended_runs() const;
  // Memory of events and runs.
  int64_t held_bytes() const;

  struct ThreadName {
    int64_t tid;
    std::string name;
  };
  std::vector<TracedNode> nodes() const;
  std::vector<TracedEdge> edges() const;
  std::vector<ThreadName> threads() const;

 private:
  static constexpr int kChunkBytes = 1 << 18;
  static constexpr int kSlabChunks = 8;
  static constexpr int64_t kSlabBytes = int64_t{kChunkBytes} * kSlabChunks;
  // When recording is off, free memory beyond this returns to the C library.
  static constexpr int64_t kKeptBytes = int64_t{16} << 20;
  static constexpr size_t kKeptRuns = 1024;

  struct Chunk {
    std::atomic<int64_t> count{0};
    int64_t taken = 0;
    std::atomic<Chunk*> next{nullptr};
    static constexpr int64_t kEvents = (kChunkBytes - 64) / int64_t{sizeof(OpEvent)};
    alignas(64) OpEvent events[kEvents];
  };
  static_assert(sizeof(Chunk) <= kChunkBytes, "a slab holds kSlabChunks of them");

  // One thread's events. The thread writes at `next`; a drain reads from `oldest`.
  struct Log {
    OpEvent* next = nullptr;
    OpEvent* end = nullptr;
    Chunk* chunk = nullptr;   // To which the thread writes.
    Chunk* oldest = nullptr;  // Written with both locks held, read with one.
    int32_t number = 0;
    bool ended = false;  // The thread has ended. Guarded by OpEvents::mu_.
  };
  struct ThreadsLog;

  // One drain, with the runs that had begun when it began.
  struct Drain {
    Timebase clock;
    uint32_t first_run;
    std::vector<int64_t> steps;  // The step of each run from first_run on.
    int64_t most;
    std::vector<DrainedOp> taken;
  };

  OpEvents() = default;
  static void AddSlowly(const OpEvent& event);
  // A chunk that was drained, or a new one; null if kMostBytes is reached.
  Chunk* NewChunk() WORKBENCH_REQUIRES(mu_);
  Timebase ClockNow() const;
  // Takes a thread's events. False: some of those that the log had when the drain began are left.
  bool TakeFrom(Log* log, Drain* drain) WORKBENCH_REQUIRES(drain_);
  // Frees the oldest chunk for other threads; false if the thread still writes to it.
  bool RecycleOldest(Log* log) WORKBENCH_REQUIRES(drain_) WORKBENCH_REQUIRES(mu_);
  // Forgets the first `most` runs, of which no event is left, up to the first that was not taken.
  void ForgetRuns(size_t most) WORKBENCH_REQUIRES(drain_) WORKBENCH_REQUIRES(mu_);
  void FreeSlabs() WORKBENCH_REQUIRES(drain_) WORKBENCH_REQUIRES(mu_);

  static thread_local Log* log_;

  std::atomic<bool> recording_{false};
  std::atomic<int64_t> lost_{0};

  std::mutex drain_;  // Held during a drain, and while recording is switched.

  mutable std::mutex mu_;
  Moment began_ WORKBENCH_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Log>> logs_ WORKBENCH_GUARDED_BY(mu_);
  std::vector<ThreadName> threads_ WORKBENCH_GUARDED_BY(mu_);
  std::vector<Chunk*> free_chunks_ WORKBENCH_GUARDED_BY(mu_);
  int64_t chunk_bytes_ WORKBENCH_GUARDED_BY(mu_) = 0;
  std::vector<TracedNode> nodes_ WORKBENCH_GUARDED_BY(mu_);
  std::vector<TracedEdge> edges_ WORKBENCH_GUARDED_BY(mu_);
  struct Run {
    TracedRun seen;
    bool taken = false;
  };
  std::vector<Run> runs_ WORKBENCH_GUARDED_BY(mu_);
  // Number of runs_[0]; written with both locks held.
  uint32_t first_run_ WORKBENCH_GUARDED_BY(mu_) = 0;
  std::unordered_map<int64_t, int> open_runs_ WORKBENCH_GUARDED_BY(mu_);  // Of each step.
};

}  // namespace workbench

#endif  // WORKBENCH_TRACING_OP_EVENTS_H_
