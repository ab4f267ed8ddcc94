#ifndef WORKBENCH_TEST_SUPPORT_POOL_H_
#define WORKBENCH_TEST_SUPPORT_POOL_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace workbench::test {

// Threads that run what they are given, in order.
class Pool {
 public:
  explicit Pool(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
  }
  // Runs all that it was given before.
  ~Pool() {
    for (size_t i = 0; i < threads_.size(); ++i) Run(nullptr);
    for (std::thread& thread : threads_) thread.join();
  }
  void Run(std::function<void()> work) {
    std::lock_guard<std::mutex> lock(mu_);
    work_.push_back(std::move(work));
    wake_.notify_one();
  }

 private:
  void Work() {
    while (true) {
      std::function<void()> work;
      {
        std::unique_lock<std::mutex> lock(mu_);
        wake_.wait(lock, [this] { return !work_.empty(); });
        work = std::move(work_.front());
        work_.pop_front();
      }
      if (!work) return;
      work();
    }
  }

  std::mutex mu_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> work_;
  std::vector<std::thread> threads_;
};

}  // namespace workbench::test

#endif  // WORKBENCH_TEST_SUPPORT_POOL_H_
