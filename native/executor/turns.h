#ifndef WORKBENCH_EXECUTOR_TURNS_H_
#define WORKBENCH_EXECUTOR_TURNS_H_

#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>

namespace workbench {

// Who may run a step on a thread of his own: a few for each core, the others in the order in
// which they came. Dozens of clients that all run at once would each be stopped in the middle of a
// step, for as long as the operating system gives the others.
//
// A turn is a courtesy, not a lock: whoever waits for longer than his patience goes ahead without
// one, so a step that blocks its thread holds nobody up for ever.
class Turns {
 public:
  Turns(int most, std::chrono::milliseconds patience) : free_(most), patience_(patience) {}

  // Of the process.
  static Turns& Get();

  // True: the caller has a turn and gives it back.
  bool Take() {
    std::unique_lock<std::mutex> lock(mu_);
    if (free_ > 0 && waiting_.empty()) {
      --free_;
      return true;
    }
    Waiter waiter;
    const auto place = waiting_.insert(waiting_.end(), &waiter);
    if (waiter.called.wait_for(lock, patience_, [&waiter] { return waiter.has_turn; })) return true;
    waiting_.erase(place);
    return false;
  }

  void Give() {
    std::lock_guard<std::mutex> lock(mu_);
    if (waiting_.empty()) {
      ++free_;
      return;
    }
    Waiter* first = waiting_.front();
    waiting_.pop_front();
    first->has_turn = true;
    first->called.notify_one();
  }

 private:
  struct Waiter {
    std::condition_variable called;
    bool has_turn = false;
  };

  std::mutex mu_;  // Guards all below.
  int free_;
  std::list<Waiter*> waiting_;
  const std::chrono::milliseconds patience_;
};

// A thread's turn while it runs a step; nothing where the thread has one already, as in a function
// that is called within the step.
class Turn {
 public:
  Turn() : outermost_(!held_) {
    if (!outermost_) return;
    held_ = true;
    has_turn_ = Turns::Get().Take();
  }
  ~Turn() {
    if (!outermost_) return;
    held_ = false;
    if (has_turn_) Turns::Get().Give();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // Around a wait: others run meanwhile.
  void Pause() {
    if (outermost_ && has_turn_) Turns::Get().Give();
  }
  void Resume() {
    if (outermost_) has_turn_ = Turns::Get().Take();
  }

 private:
  static thread_local bool held_;

  const bool outermost_;
  bool has_turn_ = false;
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_TURNS_H_
