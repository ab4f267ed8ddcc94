#ifndef WORKBENCH_TEST_EXECUTOR_STEP_FAKE_STEP_H_
#define WORKBENCH_TEST_EXECUTOR_STEP_FAKE_STEP_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "executor/scheduling/admission.h"
#include "executor/scheduling/cost_model.h"
#include "executor/scheduling/workers.h"
#include "test/executor/step/fake_graph.h"
#include "test/support/pool.h"

namespace workbench::test {

// Stops what waits in a step, from any thread.
class Cancellation {
 public:
  // False: it is cancelled already, and `then` is not called.
  bool Register(std::function<void()> then);
  void Cancel();

 private:
  std::mutex mu_;
  bool cancelled_ = false;
  std::vector<std::function<void()>> waiting_;
};

// Runs a graph as executor/policies/propagated/ does, with the same queue, admission, batches and
// order of events, so that a sanitizer sees these without TensorFlow.
class FakeStep {
 public:
  struct Place {
    const FakeGraph* graph;
    Pool* pool;
    Pool* others;  // Where nodes end that end elsewhere.
    bool one_worker;
  };

  // On the calling thread and, with more than one worker, the pool. False: it was cancelled.
  static bool Run(const Place& place, Cancellation* cancellation);
  // On the pool; the step is gone when `done` is called.
  static void RunAsync(const Place& place, Cancellation* cancellation,
                       std::function<void(bool)> done);

 private:
  using Queue = Workers<int32_t>;
  struct Local {
    bool empty() const { return next == items.size(); }
    size_t pending() const { return items.size() - next; }

    std::vector<int32_t> items;
    size_t next = 0;
    int64_t cost = 0;
    int32_t batch = 0;
  };

  FakeStep(const Place& place, Cancellation* cancellation, bool has_caller);

  void Begin(std::vector<int32_t>* roots);
  int64_t CostOf(int32_t node) const { return learned_ == nullptr ? 0 : learned_->average_ns[node]; }
  int64_t PriorityOf(int32_t node) const {
    return learned_ == nullptr ? 0 : learned_->to_sink_ns[node];
  }
  bool RunNode(int32_t node, Local* local);
  void Launch(int32_t node);
  void EndAsync(int32_t node, bool ok);
  bool EndNode(int32_t node, bool ok, Local* local);
  void Schedule(const std::vector<int32_t>& ready, Local* local);
  void AddCommon(const std::vector<int32_t>& ready, int64_t left);
  void ReturnToQueue(Local* local, size_t nodes);
  void Send(int workers);
  void Work(bool as_caller);
  void RunLocal(Local* local);
  void Finish();
  void RecordInTrial();

  const Place place_;
  Cancellation* const cancellation_;
  const bool has_caller_;
  FakePropagator propagator_;
  std::atomic<int64_t> outstanding_{0};
  std::atomic<bool> failed_{false};
  std::atomic<int32_t> batches_{0};
  bool learning_ = false;
  std::shared_ptr<const CostModel::Learned> learned_;
  std::shared_ptr<const CostModel::Learned> tried_;
  OrderTrial::Order tried_order_ = OrderTrial::Order::kByCost;
  uint64_t began_ = 0;
  int64_t batch_ns_ = INT64_MAX;
  size_t batch_ops_ = 1;
  std::shared_ptr<Queue> workers_;
  std::optional<Admission> admission_;
  std::function<void(bool)> done_;
};

}  // namespace workbench::test

#endif  // WORKBENCH_TEST_EXECUTOR_STEP_FAKE_STEP_H_
