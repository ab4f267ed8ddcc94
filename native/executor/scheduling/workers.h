#ifndef WORKBENCH_EXECUTOR_SCHEDULING_WORKERS_H_
#define WORKBENCH_EXECUTOR_SCHEDULING_WORKERS_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "threading/guarded_by.h"

namespace workbench {

// The queue of one step's ready items, and the threads that work on it: threads of a pool, and the
// thread that called the step ("the caller"), if that waits for the step's end. The item with the
// highest priority goes first; of equal ones the earliest.
//
// A thread that is sent to work calls Enter first, and nothing else if Enter refuses: the step may
// be gone by then. A worker takes items until Take has none for it; then it has left. Take returns
// kLast to the last worker that leaves an ended step. All methods are safe for any thread.
template <class Item>
class Workers {
 public:
  struct Ready {
    int64_t priority;
    int64_t cost;
    Item item;
  };

  using Clock = std::chrono::steady_clock;

  static constexpr int64_t kNotAWorker = std::numeric_limits<int64_t>::max();

  struct Settings {
    int64_t min_shared_cost = 0;  // Items that cost less are left to the worker that added them.
    Clock::duration spin{};       // How long the step's caller polls before it sleeps.
  };

  // At most `max_workers` threads work at one time, the step's caller included if there is one.
  Workers(int max_workers, bool has_caller, const Settings& settings = {})
      : max_workers_(max_workers), has_caller_(has_caller), settings_(settings) {}

  // Adds items that got ready. Returns how many threads to send; each of them calls Enter. `left`:
  // the cost of what this thread, a worker, runs before it takes items again; kNotAWorker if this
  // thread is no worker.
  int Add(const Ready* begin, const Ready* end, int64_t left) {
    std::lock_guard<std::mutex> lock(mu_);
    for (const Ready* each = begin; each != end; ++each) {
      heap_.push_back({each->priority, order_--, each->cost, each->item});
      std::push_heap(heap_.begin(), heap_.end());
      waiting_cost_ += each->cost;
    }
    PublishFirst();
    if (left != kNotAWorker && left + waiting_cost_ < settings_.min_shared_cost) return 0;
    int wanted = int(std::min<size_t>(heap_.size(), max_workers_)) - (left == 0 ? 1 : 0);
    // Threads of the pool may be busy with other work: the step's caller is woken first.
    if (caller_waits_ && wanted > 0 && Working() < max_workers_) {
      caller_waits_ = false;
      --wanted;
      WakeCaller();
    }
    const int more = std::max(0, std::min(wanted, max_workers_ - Working()) - sent_);
    sent_ += more;
    return more;
  }

  // This thread becomes a worker without having been sent.
  void Join() {
    std::lock_guard<std::mutex> lock(mu_);
    ++inside_;
  }

  // The first call of a thread that was sent. False: it is not needed, and must not touch the step.
  bool Enter() {
    std::lock_guard<std::mutex> lock(mu_);
    --sent_;
    if (ended_ || Working() == max_workers_) return false;
    ++inside_;
    return true;
  }

  enum class Took { kItems, kNothing, kLast };

  // Takes the first item, and those after it as long as they cost at most `max_cost` together and
  // are at most `max_items`. Without an item the worker has left; kLast: it was the last worker of
  // a step that has ended.
  Took Take(int64_t max_cost, size_t max_items, std::vector<Item>* taken) {
    std::lock_guard<std::mutex> lock(mu_);
    if (!heap_.empty()) {
      Pop(max_cost, max_items, taken);
      return Took::kItems;
    }
    --inside_;
    return Leave();
  }

  // The same for the step's caller, which waits for an item. False: the step has ended and all
  // other workers have left.
  bool TakeAsCaller(int64_t max_cost, size_t max_items, std::vector<Item>* taken) {
    std::unique_lock<std::mutex> lock(mu_);
    while (true) {
      if (!heap_.empty()) {
        Pop(max_cost, max_items, taken);
        return true;
      }
      caller_waits_ = true;
      if (settings_.spin > Clock::duration::zero() && !Over()) Spin(&lock);
      wake_.wait(lock, [this] { return !caller_waits_ || Over(); });
      if (caller_waits_) return false;
    }
  }

  // The same for a caller that holds an admission, or none: null. Pauses the admission if and only
  // if the caller has to wait; the caller resumes it before it runs an item.
  template <class Admission>
  bool TakeAsCaller(int64_t max_cost, size_t max_items, std::vector<Item>* taken,
                    Admission* admission) {
    if (admission != nullptr) {
      {
        std::lock_guard<std::mutex> lock(mu_);
        if (!heap_.empty()) {
          Pop(max_cost, max_items, taken);
          return true;
        }
        if (Over()) return false;
      }
      admission->Pause();
    }
    return TakeAsCaller(max_cost, max_items, taken);
  }

  // All items have run. True: no worker is left, so this thread ends the step.
  bool End() {
    std::lock_guard<std::mutex> lock(mu_);
    ended_ = true;
    if (inside_ > 0) return false;
    if (has_caller_) WakeCaller();
    return !has_caller_;
  }

  // Whether an item waits whose priority is higher.
  bool HasHigher(int64_t priority) const {
    return first_priority_.load(std::memory_order_relaxed) > priority;
  }

  // Whether one more thread could be sent.
  bool HasSpareWorker() {
    std::lock_guard<std::mutex> lock(mu_);
    return Working() + sent_ < max_workers_;
  }

 private:
  struct Entry {
    int64_t priority;
    int64_t order;
    int64_t cost;
    Item item;

    bool operator<(const Entry& other) const {
      return priority != other.priority ? priority < other.priority : order < other.order;
    }
  };

  void Pop(int64_t max_cost, size_t max_items, std::vector<Item>* taken)
      WORKBENCH_REQUIRES(mu_) {
    int64_t cost = 0;
    do {
      std::pop_heap(heap_.begin(), heap_.end());
      cost += heap_.back().cost;
      waiting_cost_ -= heap_.back().cost;
      taken->push_back(std::move(heap_.back().item));
      heap_.pop_back();
    } while (!heap_.empty() && taken->size() < max_items &&
             cost + heap_.front().cost <= max_cost);
    PublishFirst();
  }

  void PublishFirst() WORKBENCH_REQUIRES(mu_) {
    first_priority_.store(heap_.empty() ? kNone : heap_.front().priority,
                          std::memory_order_relaxed);
  }

  // The caller releases the lock and polls until it is woken.
  void Spin(std::unique_lock<std::mutex>* lock) WORKBENCH_REQUIRES(mu_) {
    caller_woken_.store(false, std::memory_order_relaxed);
    caller_spins_ = true;
    lock->unlock();
    const Clock::time_point until = Clock::now() + settings_.spin;
    while (!caller_woken_.load(std::memory_order_acquire) && Clock::now() < until) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    lock->lock();
    caller_spins_ = false;
  }

  void WakeCaller() WORKBENCH_REQUIRES(mu_) {
    caller_woken_.store(true, std::memory_order_release);
    if (!caller_spins_) wake_.notify_one();
  }

  bool Over() const WORKBENCH_REQUIRES(mu_) { return ended_ && inside_ == 0; }
  int Working() const WORKBENCH_REQUIRES(mu_) {
    return inside_ + (has_caller_ && !caller_waits_ ? 1 : 0);
  }

  Took Leave() WORKBENCH_REQUIRES(mu_) {
    if (!ended_ || inside_ > 0) return Took::kNothing;
    if (!has_caller_) return Took::kLast;
    WakeCaller();
    return Took::kNothing;
  }

  static constexpr int64_t kNone = std::numeric_limits<int64_t>::min();

  const int max_workers_;
  const bool has_caller_;
  const Settings settings_;
  // Written with mu_ held, read without it.
  std::atomic<int64_t> first_priority_{kNone};  // Of the items that wait.
  std::atomic<bool> caller_woken_{false};

  std::mutex mu_;
  std::condition_variable wake_;
  std::vector<Entry> heap_ WORKBENCH_GUARDED_BY(mu_);
  int64_t waiting_cost_ WORKBENCH_GUARDED_BY(mu_) = 0;  // Of all items in heap_.
  int64_t order_ WORKBENCH_GUARDED_BY(mu_) = 0;
  int sent_ WORKBENCH_GUARDED_BY(mu_) = 0;    // Threads that were sent and have not entered yet.
  int inside_ WORKBENCH_GUARDED_BY(mu_) = 0;  // Threads that entered and have not left; no caller.
  bool caller_waits_ WORKBENCH_GUARDED_BY(mu_) = false;
  bool caller_spins_ WORKBENCH_GUARDED_BY(mu_) = false;
  bool ended_ WORKBENCH_GUARDED_BY(mu_) = false;
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_SCHEDULING_WORKERS_H_
