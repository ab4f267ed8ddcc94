#ifndef WORKBENCH_TRACING_OP_EVENTS_H_
#define WORKBENCH_TRACING_OP_EVENTS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracing/ticks.h"

namespace workbench {

// One run of one node. Times in ticks; `run` and `node` are numbers that OpEvents gave.
struct OpEvent {
  uint64_t scheduled;
  uint64_t start;
  uint64_t end;
  uint32_t node;
  uint32_t run;
};
static_assert(sizeof(OpEvent) == 32, "two events share a cache line");

// What a node is called in a trace.
struct TracedNode {
  std::string name;
  std::string op;
  std::string device;
};

// One step of one executor; end_ns is 0 while it is under way.
struct TracedRun {
  int64_t step;      // TensorFlow's step id.
  int64_t thread;    // As the operating system counts: who called.
  uint64_t start;    // Ticks.
  uint64_t end;      // Ticks.
  int32_t executor;  // A number of its own for each executor.
  bool root;         // Begun by a client's run, not by a function call within one.
};

// An event as it is handed out, in ns of the wall clock.
struct DrainedOp {
  int64_t scheduled_ns, start_ns, end_ns, step;
  int32_t node, thread;
};

struct DrainedRun {
  int64_t start_ns, end_ns, step, thread;
  int32_t executor;
  bool root;
};

// The events of all executors of the process: every thread writes to a log of its own, without a
// lock; they are drained while it writes on. Lock order: drain_, then mu_.
class OpEvents {
 public:
  // Events that are held at most; later ones are counted as lost.
  static constexpr int64_t kMostBytes = int64_t{256} << 20;

  static OpEvents& Get();

  // Whether steps that begin now shall be recorded; a step under way keeps what it began with.
  bool recording() const { return recording_.load(std::memory_order_relaxed); }
  // On: what an earlier recording left is dropped first.
  void Record(bool on);

  // Numbers for nodes, the first of them; the names are kept until the process ends.
  uint32_t AddNodes(std::vector<TracedNode> nodes);
  // A run is a root where no other of its step is under way.
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

  // Events that wait to be taken.
  int64_t ready() const;
  int64_t lost() const { return lost_.load(std::memory_order_relaxed); }
  // Moves at most so many events out, those of each thread in their order.
  std::vector<DrainedOp> TakeOps(int64_t most);
  // Moves the ended runs out; those under way stay.
  std::vector<DrainedRun> TakeRuns(int64_t most);
  int64_t ended_runs() const;
  // Memory that events and runs have taken and not given back.
  int64_t held_bytes() const;

  struct ThreadName {
    int64_t tid;
    std::string name;
  };
  std::vector<TracedNode> nodes() const;
  std::vector<ThreadName> threads() const;

 private:
  static constexpr int kChunkBytes = 1 << 18;
  static constexpr int kSlabChunks = 8;
  static constexpr int64_t kSlabBytes = int64_t{kChunkBytes} * kSlabChunks;
  // Kept for the next recording; what is free beyond it goes back once nobody records.
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

  // One thread's events. The thread writes at `next`; whoever drains reads from `oldest`.
  struct Log {
    OpEvent* next = nullptr;
    OpEvent* end = nullptr;
    Chunk* chunk = nullptr;   // That the thread writes to.
    Chunk* oldest = nullptr;  // Written under both locks.
    int32_t number = 0;
    bool ended = false;  // The thread writes no more. Guarded by mu_.
  };
  struct ThreadsLog;

  // What a drain knows of the moment when it began.
  struct Drain {
    Timebase clock;
    uint32_t first_run;
    std::vector<int64_t> steps;  // Of each run since.
    int64_t most;
    std::vector<DrainedOp> taken;
  };

  OpEvents() = default;
  static void AddSlowly(const OpEvent& event);
  // A chunk that was drained, or a new one; null where the bound is reached.
  Chunk* NewChunk();
  Timebase ClockNow() const;
  // Takes a thread's events. False: some that were there when the drain began are left.
  bool TakeFrom(Log* log, Drain* drain);
  // With both locks held: gives the oldest chunk back; false if the thread still writes to it.
  bool RecycleOldest(Log* log);
  // With both locks held, and no event of the first runs left: they go, as far as they are taken.
  void ForgetRuns(size_t most);
  // With both locks held.
  void GiveSlabsBack();

  static thread_local Log* log_;

  std::atomic<bool> recording_{false};
  std::atomic<int64_t> lost_{0};

  std::mutex drain_;  // One drain at a time, or none.

  mutable std::mutex mu_;  // Guards all below.
  Moment began_;
  std::vector<std::unique_ptr<Log>> logs_;
  std::vector<ThreadName> threads_;
  std::vector<Chunk*> free_chunks_;
  int64_t chunk_bytes_ = 0;
  std::vector<TracedNode> nodes_;
  struct Run {
    TracedRun seen;
    bool taken = false;
  };
  std::vector<Run> runs_;
  uint32_t first_run_ = 0;  // Number of runs_[0]. Written under both locks.
  std::unordered_map<int64_t, int> under_way_;  // Runs of each step.
};

}  // namespace workbench

#endif  // WORKBENCH_TRACING_OP_EVENTS_H_
