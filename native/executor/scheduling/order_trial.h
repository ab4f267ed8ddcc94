#ifndef WORKBENCH_EXECUTOR_SCHEDULING_ORDER_TRIAL_H_
#define WORKBENCH_EXECUTOR_SCHEDULING_ORDER_TRIAL_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace workbench {

// Whether the learned order is worth what it costs: where a step leaves no core idle there is
// nothing to win. Both orders take turns for some steps; the faster one is kept.
//
// Any number of threads may call everything at one time.
class OrderTrial {
 public:
  enum class Order : int8_t { kByCost, kAsReady };
  enum class Kept : int8_t { kTrying, kByCost, kAsReady };

  struct Step {
    Order order;
    bool timed;  // Once it has ended well, the trial is told how long it took.
  };

  static constexpr uint32_t kSettling = 4;  // First steps of a session are like no others.
  static constexpr size_t kSteps = 20;      // Of each order.
  // As ready has to be faster by as much: less is noise.
  static constexpr double kWorthChange = 0.99;

  // How the step that begins is to run.
  Step Next() {
    const Kept kept = kept_.load(std::memory_order_relaxed);
    if (kept == Kept::kAsReady) return {Order::kAsReady, false};
    if (kept == Kept::kByCost) return {Order::kByCost, false};
    const uint32_t step = begun_.fetch_add(1, std::memory_order_relaxed);
    if (step < kSettling) return {Order::kByCost, false};
    // Turns that follow no period, which the batches may have.
    const bool odd = __builtin_popcount(step - kSettling) % 2 != 0;
    return {odd ? Order::kAsReady : Order::kByCost, true};
  }

  void Took(Order order, uint64_t ticks) {
    std::lock_guard<std::mutex> lock(mu_);
    if (kept() != Kept::kTrying) return;
    std::vector<uint64_t>& mine = ticks_[int(order)];
    if (mine.size() < kSteps) mine.push_back(ticks);
    for (const auto& each : ticks_) {
      if (each.size() < kSteps) return;
    }
    const double by_cost = Median(&ticks_[int(Order::kByCost)]);
    const double as_ready = Median(&ticks_[int(Order::kAsReady)]);
    const bool change = as_ready < kWorthChange * by_cost;
    kept_.store(change ? Kept::kAsReady : Kept::kByCost, std::memory_order_relaxed);
  }

  Kept kept() const { return kept_.load(std::memory_order_relaxed); }

 private:
  static double Median(std::vector<uint64_t>* ticks) {
    const auto middle = ticks->begin() + ticks->size() / 2;
    std::nth_element(ticks->begin(), middle, ticks->end());
    return double(*middle);
  }

  std::atomic<Kept> kept_{Kept::kTrying};
  std::atomic<uint32_t> begun_{0};
  std::mutex mu_;
  std::array<std::vector<uint64_t>, 2> ticks_;  // Of each order. Guarded by mu_.
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_SCHEDULING_ORDER_TRIAL_H_
