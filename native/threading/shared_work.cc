#include "threading/shared_work.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include "instructions/prefetch.h"
#include "threading/float_state.h"

namespace workbench {
namespace {

// Looks that a part of some microseconds ends within; then a thread sleeps.
constexpr int kLooks = 2000;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

class SharedWork : public std::enable_shared_from_this<SharedWork> {
 public:
  SharedWork(std::vector<Phase> phases, int64_t helpers, const CallHelper& call)
      : phases_(std::move(phases)), progress_(phases_.size()), helpers_(helpers), call_(call) {}

  void Run() {
    const AtWork at_work;
    for (int64_t i = 0; i < helpers_; ++i) CallOne();
    for (size_t p = 0; p < phases_.size(); ++p) {
      while (DoPart(p)) {
        AtWork::Refresh();
        if (IsLeft(p)) CallOne();
      }
      Await(p);
    }
    if (thrown_ != nullptr) std::rethrow_exception(thrown_);
  }

 private:
  // Each on a cache line of its own.
  struct alignas(kCacheLine) Progress {
    std::atomic<int64_t> begun{0}, done{0};
  };

  // By the thread that has the work: one more.
  void CallOne() {
    if (called_ >= helpers_) return;
    ++called_;
    bool comes = false;
    try {
      comes = call_([work = shared_from_this()] { work->Help(); });
    } catch (const std::exception&) {
      // Those that came before are at work: this thread must not leave them. It goes on alone.
    }
    if (!comes) --called_;
  }

  // Goes away where another thread is at work on its core: what one is at while it does not run is
  // what the others wait for.
  void Help() {
    const AtWork at_work;
    const TensorFlowFloatState float_state;
    size_t p = 0;
    while (p < phases_.size() && !AtWork::IsCrowded()) {
      if (DoPart(p)) continue;
      if (++p < phases_.size()) Await(p - 1);
    }
    --called_;
  }

  // Whether there was one.
  bool DoPart(size_t p) {
    const Phase& phase = phases_[p];
    const int64_t begin = progress_[p].begun.fetch_add(phase.size, std::memory_order_relaxed);
    if (begin >= phase.count) return false;
    const int64_t end = std::min(begin + phase.size, phase.count);
    DoRange(phase, begin, end);
    const int64_t before = progress_[p].done.fetch_add(end - begin, std::memory_order_acq_rel);
    if (before + end - begin == phase.count) {
      const std::lock_guard<std::mutex> hold(mu_);
      changed_.notify_all();
    }
    return true;
  }

  // What a part throws is kept until all threads have left; nothing more is done then.
  void DoRange(const Phase& phase, int64_t begin, int64_t end) {
    if (failed_.load(std::memory_order_relaxed)) return;
    try {
      phase.part(begin, end);
    } catch (...) {
      const std::lock_guard<std::mutex> hold(mu_);
      if (thrown_ == nullptr) thrown_ = std::current_exception();
      failed_.store(true, std::memory_order_relaxed);
    }
  }

  bool IsLeft(size_t p) const {
    return progress_[p].begun.load(std::memory_order_relaxed) < phases_[p].count;
  }

  bool IsDone(size_t p) const {
    return progress_[p].done.load(std::memory_order_acquire) >= phases_[p].count;
  }

  // For parts that a thread is at.
  void Await(size_t p) {
    for (int look = 0; look < kLooks; ++look) {
      if (IsDone(p)) return;
      Pause();
    }
    std::unique_lock<std::mutex> hold(mu_);
    changed_.wait(hold, [&] { return IsDone(p); });
  }

  const std::vector<Phase> phases_;
  std::vector<Progress> progress_;
  const int64_t helpers_;
  const CallHelper& call_;
  std::atomic<int64_t> called_{0};
  std::atomic<bool> failed_{false};
  std::mutex mu_;
  std::condition_variable changed_;
  std::exception_ptr thrown_;  // Set with mu_ held; read when all parts are done.
};

}  // namespace

void RunShared(std::vector<Phase> phases, int64_t helpers, const CallHelper& call) {
  const TensorFlowFloatState float_state;
  if (helpers <= 0) {
    for (const Phase& phase : phases) {
      if (phase.count > 0) phase.part(0, phase.count);
    }
    return;
  }
  std::make_shared<SharedWork>(std::move(phases), helpers, call)->Run();
}

}  // namespace workbench
