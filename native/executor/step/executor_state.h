#ifndef WORKBENCH_EXECUTOR_STEP_EXECUTOR_STATE_H_
#define WORKBENCH_EXECUTOR_STEP_EXECUTOR_STATE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "executor/scheduling/cost_model.h"
#include "executor/scheduling/kernel_cost.h"
#include "executor/scheduling/dag.h"
#include "tensorflow/core/common_runtime/immutable_executor_state.h"
#include "tensorflow/core/common_runtime/local_executor_params.h"
#include "tensorflow/core/framework/device.h"
#include "tensorflow/core/graph/graph.h"

namespace workbench {

enum class ExecutorPolicy { kNormal, kInline, kCostModel };

// What all steps of one executor share; does not change once it is made.
class ExecutorShared {
 public:
  ExecutorShared(std::string type, ExecutorPolicy policy, const CostModel::Settings& settings,
                 const tensorflow::LocalExecutorParams& params);

  absl::Status Initialize(const tensorflow::Graph& graph);

  const std::string& type() const { return type_; }
  ExecutorPolicy policy() const { return policy_; }
  const tensorflow::ImmutableExecutorState& state() const { return state_; }
  const tensorflow::LocalExecutorParams& params() const { return state_.params(); }
  // Where kernels run, with this library's memory where the policy is not normal.
  tensorflow::Device* device() const { return device_; }
  int32_t number() const { return number_; }
  // All nodes but the sink, which has no kernel. Edges that lead back in a loop are left out.
  const Flow& flow() const { return flow_; }
  // Null but for the cost-model policy.
  CostModel* cost_model() const { return cost_model_.get(); }
  Expense& expense() const { return *expense_; }
  // Whether a kernel restores slices of a checkpoint, which share a cache.
  bool reads_checkpoints() const { return reads_checkpoints_; }
  // The kernel holds its thread, maybe until another node of the same step has run: nothing must
  // wait behind it.
  bool Blocks(int32_t node) const { return has_blocking_ && blocks_[node]; }
  // The kernel calls functions that may wait until another node of the same step has run. Inline,
  // TensorFlow's While would wait on its thread until they have ended.
  bool CallsWhatWaits(int32_t node) const { return calls_what_waits_[node]; }
  // TensorFlow was asked, by TF_DETERMINISTIC_ORDER, to run nodes in an order that depends on the
  // graph alone, neither on addresses nor on times.
  bool keeps_order() const { return keeps_order_; }
  // The kernel waits for others without working, so only its launch is work.
  bool Waits(int32_t node) const { return waits_[node]; }

  // Number of the first node in traces; node i is this plus i. Names are handed over on first use.
  uint32_t FirstTracedNode() const;

 private:
  // Which kernels block their thread, or call what does.
  void FindWaiting(const tensorflow::Graph& graph);

  const std::string type_;
  const ExecutorPolicy policy_;
  const CostModel::Settings settings_;
  const int32_t number_;
  tensorflow::ImmutableExecutorState state_;
  std::unique_ptr<tensorflow::Device> caching_device_;
  tensorflow::Device* device_;
  Flow flow_;
  const bool keeps_order_;
  bool has_blocking_ = false;
  std::vector<bool> blocks_;
  std::vector<bool> calls_what_waits_;
  std::vector<bool> waits_;
  bool reads_checkpoints_ = false;
  std::unique_ptr<CostModel> cost_model_;
  std::unique_ptr<Expense> expense_;

  mutable std::mutex trace_mu_;
  mutable std::atomic<int64_t> first_traced_{-1};
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_STEP_EXECUTOR_STATE_H_
