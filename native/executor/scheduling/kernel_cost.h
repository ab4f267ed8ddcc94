#ifndef WORKBENCH_EXECUTOR_SCHEDULING_KERNEL_COST_H_
#define WORKBENCH_EXECUTOR_SCHEDULING_KERNEL_COST_H_

#include <atomic>
#include <cstdint>
#include <vector>

namespace workbench {

// Which nodes are worth a thread of their own, as stock TensorFlow decides it: a kernel that calls
// itself expensive is, until its measured average says otherwise.
class Expense {
 public:
  explicit Expense(const std::vector<bool>& marked) : averages_(marked.size()), marked_(marked) {
    for (auto& average : averages_) average.store(kUnknown, std::memory_order_relaxed);
  }

  bool IsMarked(int32_t node) const { return marked_[node]; }
  bool IsExpensive(int32_t node) const {
    return marked_[node] && averages_[node].load(std::memory_order_relaxed) > kLeastTicks;
  }
  // A run that may be worth measuring: all of an expensive node, one in sixteen of another.
  bool WantsTicks(int32_t node, uint32_t turn) const {
    return marked_[node] && (turn % 16 == 0 || IsExpensive(node));
  }
  void Add(int32_t node, uint64_t ticks) {
    std::atomic<uint64_t>& average = averages_[node];
    const uint64_t before = average.load(std::memory_order_relaxed);
    average.store(before - before / 10 + ticks / 10, std::memory_order_relaxed);
  }

 private:
  static constexpr uint64_t kLeastTicks = 8000;
  static constexpr uint64_t kUnknown = 100'000'000;

  std::vector<std::atomic<uint64_t>> averages_;
  const std::vector<bool> marked_;
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_SCHEDULING_KERNEL_COST_H_
