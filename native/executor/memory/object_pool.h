#ifndef WORKBENCH_EXECUTOR_MEMORY_OBJECT_POOL_H_
#define WORKBENCH_EXECUTOR_MEMORY_OBJECT_POOL_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "threading/guarded_by.h"

namespace workbench {

// Objects that are used again and again, each by one user at a time. Idle objects stay in the pool:
// together with those in use as many as were in use at one time lately, so objects that only a peak
// needed are destroyed. Safe for any thread; objects are created and destroyed outside its lock.
template <class T>
class ObjectPool {
 public:
  // The pool checks how many objects it needs once for this many that are returned.
  static constexpr int kPeriod = 1024;

  // Null: no object is idle. The caller creates one, which counts as taken.
  std::unique_ptr<T> Take() {
    std::lock_guard<std::mutex> lock(mu_);
    most_taken_ = std::max(most_taken_, ++taken_);
    if (idle_.empty()) return nullptr;
    std::unique_ptr<T> object = std::move(idle_.back());
    idle_.pop_back();
    return object;
  }

  void Return(std::unique_ptr<T> object) {
    std::vector<std::unique_ptr<T>> dropped;
    std::lock_guard<std::mutex> lock(mu_);
    --taken_;
    idle_.push_back(std::move(object));
    if (++returned_ < kPeriod) return;
    returned_ = 0;
    while (taken_ + idle_.size() > most_taken_) {
      dropped.push_back(std::move(idle_.back()));
      idle_.pop_back();
    }
    most_taken_ = taken_;
    if (!dropped.empty()) idle_.shrink_to_fit();
  }

  size_t idle() const {
    std::lock_guard<std::mutex> lock(mu_);
    return idle_.size();
  }

 private:
  mutable std::mutex mu_;
  std::vector<std::unique_ptr<T>> idle_ WORKBENCH_GUARDED_BY(mu_);
  size_t taken_ WORKBENCH_GUARDED_BY(mu_) = 0;
  size_t most_taken_ WORKBENCH_GUARDED_BY(mu_) = 0;  // At one time, in this period.
  int returned_ WORKBENCH_GUARDED_BY(mu_) = 0;       // In this period.
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_MEMORY_OBJECT_POOL_H_
