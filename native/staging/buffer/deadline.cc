#include "staging/buffer/deadline.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "threading/guarded_by.h"
#include "threading/started_thread.h"

namespace workbench {

// Owned by the object and by its thread: the thread may outlive the object for the moment it takes
// to return, when the object was destroyed on it.
struct DeadlineThread::State {
  using Key = std::pair<Clock::time_point, Id>;

  std::mutex mu;
  std::condition_variable wake;
  std::map<Key, std::function<void()>> queue WORKBENCH_GUARDED_BY(mu);
  std::unordered_map<Id, Clock::time_point> when_of WORKBENCH_GUARDED_BY(mu);
  Id next_id WORKBENCH_GUARDED_BY(mu) = 1;
  // When the thread wakes up by itself; only an earlier deadline needs to wake it.
  Clock::time_point sleeping_until WORKBENCH_GUARDED_BY(mu) = Clock::time_point::max();
  bool stop WORKBENCH_GUARDED_BY(mu) = false;
  std::thread thread WORKBENCH_GUARDED_BY(mu);
};

std::shared_ptr<DeadlineThread> DeadlineThread::Acquire() {
  // Never destroyed: a daemon thread may get here while the process exits.
  static auto* const mu = new std::mutex;
  static auto* const shared = new std::weak_ptr<DeadlineThread>;
  std::lock_guard<std::mutex> lock(*mu);
  std::shared_ptr<DeadlineThread> alive = shared->lock();
  if (alive == nullptr) {
    alive = std::make_shared<DeadlineThread>();
    *shared = alive;
  }
  return alive;
}

DeadlineThread::DeadlineThread() : state_(std::make_shared<State>()) {}

DeadlineThread::~DeadlineThread() {
  std::thread thread;
  {
    std::lock_guard<std::mutex> lock(state_->mu);
    state_->stop = true;
    thread = std::move(state_->thread);
  }
  state_->wake.notify_one();
  if (!thread.joinable()) return;
  if (thread.get_id() == std::this_thread::get_id()) {
    thread.detach();
  } else {
    thread.join();
  }
}

DeadlineThread::Id DeadlineThread::Schedule(Clock::time_point when, std::function<void()> fire) {
  State& state = *state_;
  bool wake = false;
  Id id;
  {
    std::lock_guard<std::mutex> lock(state.mu);
    id = state.next_id++;
    state.queue.emplace(State::Key(when, id), std::move(fire));
    state.when_of.emplace(id, when);
    if (!state.thread.joinable()) {
      state.thread = StartedThread([shared = state_] { Run(shared); });
    } else {
      wake = when < state.sleeping_until;
    }
  }
  if (wake) state.wake.notify_one();
  return id;
}

void DeadlineThread::Cancel(Id id) {
  std::function<void()> dropped;  // Destroyed after the lock is released.
  std::lock_guard<std::mutex> lock(state_->mu);
  auto found = state_->when_of.find(id);
  if (found == state_->when_of.end()) return;
  auto entry = state_->queue.find(State::Key(found->second, id));
  dropped = std::move(entry->second);
  state_->queue.erase(entry);
  state_->when_of.erase(found);
}

size_t DeadlineThread::pending() const {
  std::lock_guard<std::mutex> lock(state_->mu);
  return state_->queue.size();
}

void DeadlineThread::Run(const std::shared_ptr<State>& state) {
  std::unique_lock<std::mutex> lock(state->mu);
  while (!state->stop) {
    if (state->queue.empty()) {
      state->sleeping_until = Clock::time_point::max();
      state->wake.wait(lock);
      continue;
    }
    const Clock::time_point next = state->queue.begin()->first.first;
    if (Clock::now() < next) {
      state->sleeping_until = next;
      state->wake.wait_until(lock, next);
      continue;
    }
    std::function<void()> fire = std::move(state->queue.begin()->second);
    state->when_of.erase(state->queue.begin()->first.second);
    state->queue.erase(state->queue.begin());
    lock.unlock();
    fire();
    fire = nullptr;  // What it owns goes without the lock, too.
    lock.lock();
  }
}

}  // namespace workbench
