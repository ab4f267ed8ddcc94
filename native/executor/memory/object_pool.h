#ifndef WORKBENCH_EXECUTOR_MEMORY_OBJECT_POOL_H_
#define WORKBENCH_EXECUTOR_MEMORY_OBJECT_POOL_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace workbench {

// Objects that are used again and again, by one user at a time, and kept in between: as many as were
// in use at one time lately. What only a peak needed goes. Safe for any thread; objects are made and
// destroyed without its lock.
template <class T>
class Kept {
 public:
  // How many objects come back between two looks at how many are needed.
  static constexpr int kPeriod = 1024;

  // Null: none is kept, so the caller has to make one, which counts as taken.
  std::unique_ptr<T> Take() {
    std::lock_guard<std::mutex> lock(mu_);
    most_taken_ = std::max(most_taken_, ++taken_);
    if (idle_.empty()) return nullptr;
    std::unique_ptr<T> object = std::move(idle_.back());
    idle_.pop_back();
    return object;
  }

  void Give(std::unique_ptr<T> object) {
    std::vector<std::unique_ptr<T>> dropped;
    std::lock_guard<std::mutex> lock(mu_);
    --taken_;
    idle_.push_back(std::move(object));
    if (++given_ < kPeriod) return;
    given_ = 0;
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
  mutable std::mutex mu_;  // Guards all below.
  std::vector<std::unique_ptr<T>> idle_;
  size_t taken_ = 0;
  size_t most_taken_ = 0;  // At one time, in this period.
  int given_ = 0;
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_MEMORY_OBJECT_POOL_H_
