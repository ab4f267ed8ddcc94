#ifndef WORKBENCH_STAGING_BUFFER_DEADLINE_H_
#define WORKBENCH_STAGING_BUFFER_DEADLINE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

namespace workbench {

// Calls functions at deadlines, on one thread shared by the whole process.
//
// The thread starts with the first deadline and ends with the last owner of the object, so that a
// process whose buffers are gone has no thread of ours. Functions are called without any lock held;
// they must be short and must not throw.
//
// Lock order: its lock is innermost; it calls nothing while holding it.
class DeadlineThread {
 public:
  using Id = uint64_t;
  using Clock = std::chrono::steady_clock;
  static constexpr Id kNone = 0;

  // The process's deadline thread; shared by all who hold it at the same time.
  static std::shared_ptr<DeadlineThread> Acquire();

  DeadlineThread();
  // Joins the thread, unless called on it (when a function drops the last owner).
  ~DeadlineThread();
  DeadlineThread(const DeadlineThread&) = delete;
  DeadlineThread& operator=(const DeadlineThread&) = delete;

  // Calls `fire` once, at `when` or shortly after. Never returns kNone. Where the system has no
  // thread to give, deadlines pass unnoticed until one is scheduled when it has.
  Id Schedule(Clock::time_point when, std::function<void()> fire);

  // Forgets a deadline. Doesn't wait: the function may be running, or about to run.
  void Cancel(Id id);

  // Deadlines not yet fired or cancelled.
  size_t pending() const;

 private:
  struct State;
  static void Run(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

}  // namespace workbench

#endif  // WORKBENCH_STAGING_BUFFER_DEADLINE_H_
