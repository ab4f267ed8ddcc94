#ifndef WORKBENCH_EXECUTOR_SCHEDULING_KERNEL_COST_H_
#define WORKBENCH_EXECUTOR_SCHEDULING_KERNEL_COST_H_

#include <atomic>
#include <cstdint>
#include <vector>

namespace workbench {

// Which nodes are worth a thread of their own, decided as stock TensorFlow does: a kernel that is
// marked expensive counts as expensive until its measured average says otherwise. Costs are in
// ticks.
class KernelCost {
 public:
  explicit KernelCost(const std::vector<bool>& marked) : averages_(marked.size()), marked_(marked) {
    for (auto& average : averages_) average.store(kUnknown, std::memory_order_relaxed);
  }

  bool IsMarkedExpensive(int32_t node) const { return marked_[node]; }
  bool IsExpensive(int32_t node) const {
    return marked_[node] && averages_[node].load(std::memory_order_relaxed) > kLeastTicks;
  }
  // Whether to measure a run of this node: every run of an expensive node, and of other marked
  // nodes those whose `run`, a number that counts up, is a multiple of 16.
  bool ShouldMeasure(int32_t node, uint32_t run) const {
    return marked_[node] && (run % 16 == 0 || IsExpensive(node));
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
