#ifndef WORKBENCH_EXECUTOR_SCHEDULING_ORDER_TRIAL_H_
#define WORKBENCH_EXECUTOR_SCHEDULING_ORDER_TRIAL_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "threading/guarded_by.h"

namespace workbench {

// Whether scheduling by learned costs is worth its overhead: a step that leaves no core idle gains
// nothing. The first steps alternate between both orders; then that of stock TensorFlow stays unless
// the other one was clearly faster.
//
// All methods are safe for any thread.
class OrderTrial {
 public:
  enum class Order : int8_t { kByCost, kAsReady };
  enum class Verdict : int8_t { kTrying, kByCost, kAsReady };

  struct Step {
    Order order;
    bool timed;  // The step calls Record when it has ended without an error.
  };

  static constexpr uint32_t kSettling = 4;  // First steps of a session are like no others.
  static constexpr size_t kSteps = 20;      // Of each order.
  // kByCost wins only if its time is below this share of the other's; less is noise.
  static constexpr double kWorthIt = 0.99;

  // How the step that begins now runs.
  Step Next() {
    const Verdict known = verdict();
    if (known == Verdict::kAsReady) return {Order::kAsReady, false};
    if (known == Verdict::kByCost) return {Order::kByCost, false};
    const uint32_t step = begun_.fetch_add(1, std::memory_order_relaxed);
    if (step < kSettling) return {Order::kByCost, false};
    // A sequence without a period: batches of input may have one.
    const bool odd = __builtin_popcount(step - kSettling) % 2 != 0;
    return {odd ? Order::kAsReady : Order::kByCost, true};
  }

  void Record(Order order, uint64_t ticks) {
    std::lock_guard<std::mutex> lock(mu_);
    if (verdict() != Verdict::kTrying) return;
    std::vector<uint64_t>& of_order = ticks_[int(order)];
    if (of_order.size() < kSteps) of_order.push_back(ticks);
    for (const auto& each : ticks_) {
      if (each.size() < kSteps) return;
    }
    const double by_cost = Median(&ticks_[int(Order::kByCost)]);
    const double as_ready = Median(&ticks_[int(Order::kAsReady)]);
    const bool worth_it = by_cost < kWorthIt * as_ready;
    verdict_.store(worth_it ? Verdict::kByCost : Verdict::kAsReady, std::memory_order_relaxed);
  }

  Verdict verdict() const { return verdict_.load(std::memory_order_relaxed); }

 private:
  static double Median(std::vector<uint64_t>* ticks) {
    const auto middle = ticks->begin() + ticks->size() / 2;
    std::nth_element(ticks->begin(), middle, ticks->end());
    return double(*middle);
  }

  std::atomic<Verdict> verdict_{Verdict::kTrying};
  std::atomic<uint32_t> begun_{0};
  std::mutex mu_;
  std::array<std::vector<uint64_t>, 2> ticks_ WORKBENCH_GUARDED_BY(mu_);  // By order.
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_SCHEDULING_ORDER_TRIAL_H_
