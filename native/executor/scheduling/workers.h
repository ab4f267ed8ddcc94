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

namespace workbench {

// What is ready to run in one step, and who runs it: threads of a pool, and the thread that called
// the step if it waits there ("home"). The item of the highest priority goes first, of equal ones
// the earliest.
//
// Whoever is sent to work calls Enter first and nothing else if it is refused: the step may be gone
// by then. A worker takes until there is nothing, which is when it has left; the last to leave an
// ended step is told so. All methods are safe for any thread.
template <class Item>
class Workers {
 public:
  struct Ready {
    int64_t priority;
    int64_t cost;
    Item item;
  };

  using Clock = std::chrono::steady_clock;

  static constexpr int64_t kNoWorker = std::numeric_limits<int64_t>::max();

  struct Settings {
    int64_t worth_help = 0;  // What costs less is left to the worker that added it.
    Clock::duration spin{};  // Home looks for so long before it sleeps, as threads of the pool do.
  };

  // At most so many work at one time; home, if there is one, counts.
  Workers(int most, bool home, const Settings& settings = {})
      : most_(most), home_(home), settings_(settings) {}

  // Adds what got ready. Returns how many workers to send (each will call Enter). `left`: the cost of
  // what the caller, a worker, runs before it takes from here again; kNoWorker if it never does.
  int Add(const Ready* begin, const Ready* end, int64_t left) {
    std::lock_guard<std::mutex> lock(mu_);
    for (const Ready* each = begin; each != end; ++each) {
      heap_.push_back({each->priority, order_--, each->cost, each->item});
      std::push_heap(heap_.begin(), heap_.end());
      waiting_cost_ += each->cost;
    }
    ShowFirst();
    if (left != kNoWorker && left + waiting_cost_ < settings_.worth_help) return 0;
    int wanted = int(std::min<size_t>(heap_.size(), most_)) - (left == 0 ? 1 : 0);
    // Those who were sent may be stuck behind others in the pool: home is here, and goes first.
    if (home_waits_ && wanted > 0 && Working() < most_) {
      home_waits_ = false;
      --wanted;
      CallHome();
    }
    const int sent = std::max(0, std::min(wanted, most_ - Working()) - coming_);
    coming_ += sent;
    return sent;
  }

  // The caller becomes a worker by itself, like one that was sent and has entered.
  void Join() {
    std::lock_guard<std::mutex> lock(mu_);
    ++inside_;
  }

  // The first call of a worker that was sent. False: there is nothing to do; leave at once.
  bool Enter() {
    std::lock_guard<std::mutex> lock(mu_);
    --coming_;
    if (ended_ || Working() == most_) return false;
    ++inside_;
    return true;
  }

  enum class Took { kItems, kNothing, kLast };

  // Takes the first item and, while the sum of costs stays within `most_cost` and there are at most
  // `most_items`, those after it. Where there is nothing the worker has left; kLast: the step has
  // ended and nobody else is inside.
  Took Take(int64_t most_cost, size_t most_items, std::vector<Item>* taken) {
    std::lock_guard<std::mutex> lock(mu_);
    if (!heap_.empty()) {
      Pop(most_cost, most_items, taken);
      return Took::kItems;
    }
    --inside_;
    return Leave();
  }

  // The same for home, which waits where there is nothing. False: the step has ended and everybody
  // else has left.
  bool TakeHome(int64_t most_cost, size_t most_items, std::vector<Item>* taken) {
    std::unique_lock<std::mutex> lock(mu_);
    while (true) {
      if (!heap_.empty()) {
        Pop(most_cost, most_items, taken);
        return true;
      }
      home_waits_ = true;
      if (settings_.spin > Clock::duration::zero() && !Over()) Spin(&lock);
      // Whoever is about to leave was inside when the step ended.
      wake_.wait(lock, [this] { return !home_waits_ || Over(); });
      if (home_waits_) return false;
    }
  }

  // The same for home with a turn to run (or none: null), which is paused if and only if home has to
  // wait; home resumes it when there is something to run.
  template <class Turn>
  bool TakeHome(int64_t most_cost, size_t most_items, std::vector<Item>* taken, Turn* turn) {
    if (turn != nullptr) {
      {
        std::lock_guard<std::mutex> lock(mu_);
        if (!heap_.empty()) {
          Pop(most_cost, most_items, taken);
          return true;
        }
        if (Over()) return false;
      }
      turn->Pause();
    }
    return TakeHome(most_cost, most_items, taken);
  }

  // Nothing is under way any more. True: nobody is inside, so the caller is the last.
  bool End() {
    std::lock_guard<std::mutex> lock(mu_);
    ended_ = true;
    if (inside_ > 0) return false;
    if (home_) CallHome();
    return !home_;
  }

  // Whether something waits that is to run before an item of this priority.
  bool HasBefore(int64_t priority) const {
    return first_priority_.load(std::memory_order_relaxed) > priority;
  }

  // Whether somebody could work who has nothing to do.
  bool WouldHelp() {
    std::lock_guard<std::mutex> lock(mu_);
    return Working() + coming_ < most_;
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

  void Pop(int64_t most_cost, size_t most_items, std::vector<Item>* taken) {
    int64_t cost = 0;
    do {
      std::pop_heap(heap_.begin(), heap_.end());
      cost += heap_.back().cost;
      waiting_cost_ -= heap_.back().cost;
      taken->push_back(std::move(heap_.back().item));
      heap_.pop_back();
    } while (!heap_.empty() && taken->size() < most_items &&
             cost + heap_.front().cost <= most_cost);
    ShowFirst();
  }

  void ShowFirst() {
    first_priority_.store(heap_.empty() ? kNone : heap_.front().priority,
                          std::memory_order_relaxed);
  }

  // Home lets go of the lock, and looks whether somebody calls.
  void Spin(std::unique_lock<std::mutex>* lock) {
    home_called_.store(false, std::memory_order_relaxed);
    home_spins_ = true;
    lock->unlock();
    const Clock::time_point until = Clock::now() + settings_.spin;
    while (!home_called_.load(std::memory_order_acquire) && Clock::now() < until) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    lock->lock();
    home_spins_ = false;
  }

  void CallHome() {
    home_called_.store(true, std::memory_order_release);
    if (!home_spins_) wake_.notify_one();
  }

  bool Over() const { return ended_ && inside_ == 0; }
  int Working() const { return inside_ + (home_ && !home_waits_ ? 1 : 0); }

  Took Leave() {
    if (!ended_ || inside_ > 0) return Took::kNothing;
    if (!home_) return Took::kLast;
    CallHome();
    return Took::kNothing;
  }

  static constexpr int64_t kNone = std::numeric_limits<int64_t>::min();

  const int most_;
  const bool home_;
  const Settings settings_;
  // Written with the lock held, as all below:
  std::atomic<int64_t> first_priority_{kNone};  // Of what waits.
  std::atomic<bool> home_called_{false};

  std::mutex mu_;  // Guards all below.
  std::condition_variable wake_;
  std::vector<Entry> heap_;
  int64_t waiting_cost_ = 0;  // Of all that is in it.
  int64_t order_ = 0;
  int coming_ = 0;   // Sent, but not here yet.
  int inside_ = 0;   // Entered and not left; home does not count.
  bool home_waits_ = false;
  bool home_spins_ = false;
  bool ended_ = false;
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_SCHEDULING_WORKERS_H_
