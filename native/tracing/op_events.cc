#include "tracing/op_events.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <new>
#include <thread>
#include <utility>

namespace workbench {
namespace {

// Two moments closer than this would make the ratio of the clocks too inexact for a trace.
constexpr int64_t kLeastApartNs = 20'000'000;

std::string NameOfThisThread() {
  char name[32] = "";
  pthread_getname_np(pthread_self(), name, sizeof(name));
  return name;
}

// Trivially destructible: it is readable after the thread's other thread_locals are gone.
thread_local bool thread_ended = false;

int64_t NumberOfThisThread() {
  static thread_local const int64_t number = syscall(SYS_gettid);
  return number;
}

}  // namespace

thread_local OpEvents::Log* OpEvents::log_ = nullptr;

OpEvents& OpEvents::Get() {
  // Never destroyed: threads of TensorFlow outlive what is static here.
  static OpEvents* events = new OpEvents();
  return *events;
}

// Marks a thread's log as ended when the thread ends, so that its chunks can be used again.
struct OpEvents::ThreadsLog {
  Log* log = nullptr;

  ~ThreadsLog() {
    if (log == nullptr) return;
    thread_ended = true;
    log_ = nullptr;
    std::lock_guard<std::mutex> lock(Get().mu_);
    log->ended = true;
  }
};

void OpEvents::Record(bool on) {
  std::lock_guard<std::mutex> draining(drain_);
  std::lock_guard<std::mutex> lock(mu_);
  if (on && !recording()) {
    began_ = Moment::Now();
    for (const auto& log : logs_) {
      while (log->oldest != nullptr) {
        log->oldest->taken = log->oldest->count.load(std::memory_order_acquire);
        if (!RecycleOldest(log.get())) break;
      }
    }
    for (Run& run : runs_) run.taken |= run.seen.end != 0;
    ForgetRuns(runs_.size());
    lost_.store(0, std::memory_order_relaxed);
  }
  recording_.store(on, std::memory_order_relaxed);
  if (!on) FreeSlabs();
}

uint32_t OpEvents::AddNodes(std::vector<TracedNode> nodes, std::vector<TracedEdge> edges) {
  std::lock_guard<std::mutex> lock(mu_);
  const uint32_t first = nodes_.size();
  std::move(nodes.begin(), nodes.end(), std::back_inserter(nodes_));
  for (const TracedEdge& edge : edges) {
    edges_.push_back({first + edge.source, first + edge.target, edge.control});
  }
  return first;
}

uint32_t OpEvents::BeginRun(int64_t step, int32_t executor) {
  const int64_t thread = NumberOfThisThread();
  std::lock_guard<std::mutex> lock(mu_);
  const bool root = ++open_runs_[step] == 1;
  runs_.push_back({TracedRun{step, thread, Ticks(), 0, executor, root}});
  return first_run_ + runs_.size() - 1;
}

void OpEvents::EndRun(uint32_t run) {
  std::lock_guard<std::mutex> lock(mu_);
  TracedRun& seen = runs_[run - first_run_].seen;
  seen.end = Ticks();
  const auto step = open_runs_.find(seen.step);
  if (--step->second == 0) open_runs_.erase(step);
}

void OpEvents::AddSlowly(const OpEvent& event) {
  static thread_local ThreadsLog threads_log;
  OpEvents& events = Get();
  {
    std::lock_guard<std::mutex> lock(events.mu_);
    Chunk* chunk = thread_ended ? nullptr : events.NewChunk();
    if (chunk == nullptr) {
      events.lost_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    if (log_ == nullptr) {
      events.logs_.push_back(std::make_unique<Log>());
      log_ = threads_log.log = events.logs_.back().get();
      log_->number = events.threads_.size();
      log_->oldest = chunk;
      events.threads_.push_back({NumberOfThisThread(), NameOfThisThread()});
    } else {
      // After this store the drain may give the full chunk to another thread.
      log_->chunk->next.store(chunk, std::memory_order_release);
    }
    log_->chunk = chunk;
    log_->next = chunk->events;
    log_->end = chunk->events + Chunk::kEvents;
  }
  Add(event);
}

OpEvents::Chunk* OpEvents::NewChunk() {
  if (free_chunks_.empty()) {
    if (chunk_bytes_ + kSlabBytes > kMostBytes) return nullptr;
    // Huge pages: a fault for every 4 KB would cost more than the events that lie there.
    void* slab = std::aligned_alloc(kSlabBytes, kSlabBytes);
    if (slab == nullptr) return nullptr;
    madvise(slab, kSlabBytes, MADV_HUGEPAGE);
    chunk_bytes_ += kSlabBytes;
    for (int i = kSlabChunks - 1; i >= 0; --i) {
      free_chunks_.push_back(
          reinterpret_cast<Chunk*>(static_cast<char*>(slab) + int64_t{kChunkBytes} * i));
    }
  }
  Chunk* chunk = free_chunks_.back();
  free_chunks_.pop_back();
  return new (chunk) Chunk;
}

Timebase OpEvents::ClockNow() const {
  Moment now = Moment::Now();
  Moment began;
  {
    std::lock_guard<std::mutex> lock(mu_);
    began = began_;
  }
  if (now.wall_ns - began.wall_ns < kLeastApartNs) {
    std::this_thread::sleep_for(
        std::chrono::nanoseconds(kLeastApartNs - (now.wall_ns - began.wall_ns)));
    now = Moment::Now();
  }
  return Timebase(began, now);
}

int64_t OpEvents::ready() const {
  std::lock_guard<std::mutex> lock(mu_);
  int64_t found = 0;
  for (const auto& log : logs_) {
    for (Chunk* chunk = log->oldest; chunk != nullptr;
         chunk = chunk->next.load(std::memory_order_acquire)) {
      found += chunk->count.load(std::memory_order_acquire) - chunk->taken;
    }
  }
  return found;
}

std::vector<DrainedOp> OpEvents::TakeOps(int64_t most) {
  const Timebase clock = ClockNow();
  std::lock_guard<std::mutex> draining(drain_);
  Drain drain{clock, 0, {}, most, {}};
  std::vector<Log*> logs;
  size_t ended_runs = 0;  // Before the first that has not ended: all their events are in the logs.
  {
    std::lock_guard<std::mutex> lock(mu_);
    drain.first_run = first_run_;
    for (const auto& log : logs_) logs.push_back(log.get());
    for (const Run& run : runs_) {
      if (run.seen.end != 0 && ended_runs == drain.steps.size()) ++ended_runs;
      drain.steps.push_back(run.seen.step);
    }
  }
  bool all = true;
  for (Log* log : logs) all &= TakeFrom(log, &drain);
  std::lock_guard<std::mutex> lock(mu_);
  if (all) ForgetRuns(ended_runs);
  logs_.erase(std::remove_if(logs_.begin(), logs_.end(),
                             [](const auto& log) { return log->oldest == nullptr; }),
              logs_.end());
  if (!recording()) FreeSlabs();
  return std::move(drain.taken);
}

bool OpEvents::TakeFrom(Log* log, Drain* drain) {
  while (true) {
    Chunk* chunk = log->oldest;
    if (chunk == nullptr) return true;
    // Read before the count: a complete chunk gets no more events.
    bool complete;
    {
      std::lock_guard<std::mutex> lock(mu_);
      complete = log->ended || chunk->next.load(std::memory_order_acquire) != nullptr;
    }
    const int64_t count = chunk->count.load(std::memory_order_acquire);
    int64_t i = chunk->taken;
    bool later = false;  // The event's run began after the drain.
    for (; i < count && int64_t(drain->taken.size()) < drain->most; ++i) {
      const OpEvent& event = chunk->events[i];
      const uint32_t run = event.run - drain->first_run;
      if (int32_t(run) < 0) continue;  // The run was forgotten.
      later = run >= drain->steps.size();
      if (later) break;
      drain->taken.push_back({drain->clock.WallNs(event.scheduled),
                              drain->clock.WallNs(event.start), drain->clock.WallNs(event.end),
                              drain->steps[run], event.made * OpEvent::kLineBytes,
                              event.passed * OpEvent::kLineBytes, int32_t(event.node),
                              log->number});
    }
    std::lock_guard<std::mutex> lock(mu_);
    chunk->taken = i;
    if (i < count) return later;
    if (!complete) return true;
    RecycleOldest(log);
  }
}

bool OpEvents::RecycleOldest(Log* log) {
  Chunk* chunk = log->oldest;
  Chunk* next = chunk->next.load(std::memory_order_acquire);
  if (next == nullptr && !log->ended) return false;
  log->oldest = next;
  free_chunks_.push_back(chunk);
  return true;
}

void OpEvents::ForgetRuns(size_t most) {
  size_t first = 0;
  while (first < most && runs_[first].taken) ++first;
  runs_.erase(runs_.begin(), runs_.begin() + first);
  first_run_ += first;
  if (runs_.capacity() > 2 * runs_.size() + kKeptRuns) runs_.shrink_to_fit();
}

void OpEvents::FreeSlabs() {
  if (chunk_bytes_ <= kKeptBytes) return;
  // Puts the chunks of a slab side by side.
  std::sort(free_chunks_.begin(), free_chunks_.end());
  const auto slab_of = [](Chunk* chunk) { return reinterpret_cast<uintptr_t>(chunk) / kSlabBytes; };
  std::vector<Chunk*> left;
  for (size_t first = 0, end; first < free_chunks_.size(); first = end) {
    end = first + 1;
    while (end < free_chunks_.size() && slab_of(free_chunks_[end]) == slab_of(free_chunks_[first])) {
      ++end;
    }
    if (end - first == kSlabChunks && chunk_bytes_ > kKeptBytes) {
      std::free(free_chunks_[first]);
      chunk_bytes_ -= kSlabBytes;
    } else {
      left.insert(left.end(), free_chunks_.begin() + first, free_chunks_.begin() + end);
    }
  }
  free_chunks_ = std::move(left);
}

int64_t OpEvents::held_bytes() const {
  std::lock_guard<std::mutex> lock(mu_);
  return chunk_bytes_ + int64_t(runs_.capacity() * sizeof(Run));
}

std::vector<DrainedRun> OpEvents::TakeRuns(int64_t most) {
  const Timebase clock = ClockNow();
  std::lock_guard<std::mutex> lock(mu_);
  std::vector<DrainedRun> taken;
  for (Run& run : runs_) {
    if (int64_t(taken.size()) == most) break;
    if (run.taken || run.seen.end == 0) continue;
    run.taken = true;
    taken.push_back({clock.WallNs(run.seen.start), clock.WallNs(run.seen.end), run.seen.step,
                     run.seen.thread, run.seen.executor, run.seen.root});
  }
  return taken;
}

int64_t OpEvents::ended_runs() const {
  std::lock_guard<std::mutex> lock(mu_);
  return std::count_if(runs_.begin(), runs_.end(),
                       [](const Run& run) { return !run.taken && run.seen.end != 0; });
}

std::vector<TracedNode> OpEvents::nodes() const {
  std::lock_guard<std::mutex> lock(mu_);
  return nodes_;
}

std::vector<TracedEdge> OpEvents::edges() const {
  std::lock_guard<std::mutex> lock(mu_);
  return edges_;
}

std::vector<OpEvents::ThreadName> OpEvents::threads() const {
  std::lock_guard<std::mutex> lock(mu_);
  return threads_;
}

}  // namespace workbench
