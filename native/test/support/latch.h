#ifndef WORKBENCH_TEST_SUPPORT_LATCH_H_
#define WORKBENCH_TEST_SUPPORT_LATCH_H_

#include <condition_variable>
#include <mutex>

namespace workbench::test {

// Lets a test wait until something has happened a number of times.
class Latch {
 public:
  explicit Latch(int count) : count_(count) {}

  void CountDown() {
    std::lock_guard<std::mutex> lock(mu_);
    --count_;
    changed_.notify_all();
  }

  void Wait() {
    std::unique_lock<std::mutex> lock(mu_);
    while (count_ > 0) changed_.wait(lock);
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  int count_;
};

}  // namespace workbench::test

#endif  // WORKBENCH_TEST_SUPPORT_LATCH_H_
