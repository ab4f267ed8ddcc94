#ifndef WORKBENCH_EXECUTOR_SCHEDULING_ADMISSION_H_
#define WORKBENCH_EXECUTOR_SCHEDULING_ADMISSION_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <vector>

#include "threading/guarded_by.h"

namespace workbench {

// Limits how many steps run at one time on the threads of their callers. Each running step holds
// one of a few slots per core; clients without a slot wait in a queue, first in, first out. Without
// a limit the operating system would interrupt dozens of clients in the middle of their steps.
//
// Waking a thread costs as much as a short step, and its caches are cold. So a client that calls
// again at once keeps its slot between two calls, for a limited time; then it joins the queue's
// end.
//
// A slot is advisory, not a lock: a client that has waited for `max_wait` runs its step without a
// slot, so a step that blocks its thread never stops the others for good.
class StepAdmission {
 public:
  using Clock = std::chrono::steady_clock;

  struct Settings {
    int slots;
    Clock::duration max_wait;
    Clock::duration max_hold;  // A client keeps a slot for this long, and to the end of its step.
    Clock::duration max_idle;  // Between two calls; then a kept slot goes to the next client.
  };

  // A thread that calls steps one after the other.
  class Client {
   public:
    explicit Client(StepAdmission* admission) : admission_(admission) {}
    ~Client() { admission_->Remove(this); }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

   private:
    friend class StepAdmission;

    StepAdmission* const admission_;
    Clock::time_point slot_since_;
    // Of the call before; long ago at first.
    Clock::time_point last_end_{Clock::duration::min() / 2};
    bool called_soon_ = false;  // This call began at most max_idle after the one before.
    bool has_slot_ = false;     // Within a call.
    bool keeps_slot_ = false;   // Between two calls. Guarded by StepAdmission::mu_.
  };

  explicit StepAdmission(const Settings& settings) : settings_(settings), free_(settings.slots) {}

  // Of the process.
  static StepAdmission& Get();

  // A call begins; waits for a slot. False: the call runs without one. EndCall follows in either
  // case.
  bool BeginCall(Client* client);
  void EndCall(Client* client);

  // Around a wait within a call, which tells nothing about how soon the client calls again. A call
  // may end while it is paused.
  void Pause(Client* client);
  bool Resume(Client* client);

  // How often a client asked for a slot, at the begin of a call or when it resumed one; how often a
  // client kept its slot between two calls; how many clients wait now.
  int64_t requests() const;
  int64_t kept() const;
  size_t waiting() const;

 private:
  struct Waiter {
    std::condition_variable admitted;
    bool has_slot = false;
  };

  bool Acquire(Client* client, Clock::time_point now);
  void Remove(Client* client);
  void StopKeeping(Client* client) WORKBENCH_REQUIRES(mu_);
  // Releases the slots of clients that have not called for max_idle.
  void ReleaseIdle(Clock::time_point now) WORKBENCH_REQUIRES(mu_);
  // Hands a slot to the client that has waited longest.
  void Release() WORKBENCH_REQUIRES(mu_);

  const Settings settings_;

  mutable std::mutex mu_;
  int64_t requests_ WORKBENCH_GUARDED_BY(mu_) = 0;
  int64_t kept_ WORKBENCH_GUARDED_BY(mu_) = 0;
  int free_ WORKBENCH_GUARDED_BY(mu_);  // 0 while a client waits.
  std::list<Waiter*> waiting_ WORKBENCH_GUARDED_BY(mu_);
  // Clients that keep a slot between two calls, the longest idle first. They never keep all slots:
  // a client that runs is needed to hand its slot on.
  std::vector<Client*> keeping_ WORKBENCH_GUARDED_BY(mu_);
};

// Holds a slot of the process while the calling thread runs a step. A nested one does nothing, as
// in a function that is called within the step.
class Admission {
 public:
  Admission();
  ~Admission();
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // Before the step waits: other clients run meanwhile.
  void Pause();
  // Before the step runs nodes again. Does nothing if the admission is not paused.
  void Resume();

 private:
  const bool outermost_;
  bool paused_ = false;
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_SCHEDULING_ADMISSION_H_
