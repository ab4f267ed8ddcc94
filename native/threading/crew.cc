#include "threading/crew.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "instructions/prefetch.h"
#include "threading/allowed_cores.h"
#include "threading/started_thread.h"

namespace workbench {
namespace {

// A process on a machine with more gets no help beyond these.
constexpr int kCoresOfSet = CPU_SETSIZE;

// Threads at work on each core.
struct alignas(kCacheLine) Count {
  std::atomic<int> threads{0};
};
Count at_work[kCoresOfSet];

struct Here {
  bool counted = false;
  int core = 0;
};
thread_local Here here;

int CoreHere() {
  const int core = sched_getcpu();
  return core >= 0 && core < kCoresOfSet ? core : 0;
}

// The thread of a core.
class Hand {
 public:
  explicit Hand(int core) : core_(core) {}

  int core() const { return core_; }

  // Where the core is free, and the thread too.
  bool Call(std::function<void()>* task) {
    if (at_work[core_].threads.load(std::memory_order_relaxed) > 0) return false;
    if (called_.exchange(true, std::memory_order_acquire)) return false;
    // Where no thread is to be had this one counts as busy from now on: asking again takes time.
    if (!started_ && !(started_ = Start())) return false;
    {
      const std::lock_guard<std::mutex> hold(mu_);
      task_ = std::move(*task);
    }
    changed_.notify_one();
    return true;
  }

 private:
  bool Start() {
    std::thread thread = StartedThread([this] { Run(); });
    if (!thread.joinable()) return false;
    pthread_setname_np(thread.native_handle(), ("wb_core_" + std::to_string(core_)).c_str());
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core_, &cores);
    pthread_setaffinity_np(thread.native_handle(), sizeof(cores), &cores);
    // One that has just woken up is not to interrupt others.
    sched_param none{};
    pthread_setschedparam(thread.native_handle(), SCHED_BATCH, &none);
    thread.detach();
    return true;
  }

  void Run() {
    for (;;) {
      std::function<void()> task;
      {
        std::unique_lock<std::mutex> hold(mu_);
        changed_.wait(hold, [this] { return task_ != nullptr; });
        task.swap(task_);
      }
      task();
      task = nullptr;
      called_.store(false, std::memory_order_release);
    }
  }

  const int core_;
  std::atomic<bool> called_{false};
  bool started_ = false;  // Of the thread that has set called_.
  std::mutex mu_;
  std::condition_variable changed_;
  std::function<void()> task_;
};

// Of the cores that the process may run on; they live as long as it does.
const std::vector<std::unique_ptr<Hand>>& Hands() {
  static const auto& hands = *new std::vector<std::unique_ptr<Hand>>([] {
    std::vector<std::unique_ptr<Hand>> made;
    // Of the thread that the process began with: this one may be bound to a core.
    for (const int core : AllowedCoreNumbers([](size_t bytes, cpu_set_t* cores) {
           return sched_getaffinity(getpid(), bytes, cores);
         })) {
      if (core < kCoresOfSet) made.push_back(std::make_unique<Hand>(core));
    }
    return made;
  }());
  return hands;
}

}  // namespace

AtWork::AtWork() : counts_(!here.counted) {
  if (!counts_) return;
  here = {true, CoreHere()};
  ++at_work[here.core].threads;
}

AtWork::~AtWork() {
  if (!counts_) return;
  here.counted = false;
  --at_work[here.core].threads;
}

void AtWork::Refresh() {
  if (!here.counted) return;
  const int core = CoreHere();
  if (core == here.core) return;
  ++at_work[core].threads;
  --at_work[here.core].threads;
  here.core = core;
}

bool AtWork::IsCrowded() { return at_work[here.core].threads.load(std::memory_order_relaxed) > 1; }

bool CallCrew(std::function<void()> task) {
  const auto& hands = Hands();
  const int core = CoreHere();
  // From the next core on: the nearest ones share most with this one.
  const auto next = std::partition_point(hands.begin(), hands.end(), [core](const auto& hand) {
    return hand->core() <= core;
  });
  const auto call = [&task](const auto& hand) { return hand->Call(&task); };
  return std::any_of(next, hands.end(), call) || std::any_of(hands.begin(), next, call);
}

}  // namespace workbench
