#ifndef WORKBENCH_EXECUTOR_STEP_EXECUTOR_STATE_H_
#define WORKBENCH_EXECUTOR_STEP_EXECUTOR_STATE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "executor/scheduling/cost_model.h"
#include "executor/scheduling/dag.h"
#include "executor/scheduling/kernel_cost.h"
#include "tensorflow/core/common_runtime/immutable_executor_state.h"
#include "tensorflow/core/common_runtime/local_executor_params.h"
#include "tensorflow/core/framework/device.h"
#include "tensorflow/core/graph/graph.h"

namespace workbench {

enum class ExecutorPolicy { kNormal, kInline, kCostModel };

// What all steps of one executor share; immutable after Initialize.
class ExecutorState {
 public:
  ExecutorState(std::string type, ExecutorPolicy policy, const CostModel::Settings& settings,
                 const tensorflow::LocalExecutorParams& params);

  absl::Status Initialize(const tensorflow::Graph& graph);

  const std::string& type() const { return type_; }
  ExecutorPolicy policy() const { return policy_; }
  const tensorflow::ImmutableExecutorState& immutable_state() const { return immutable_state_; }
  const tensorflow::LocalExecutorParams& params() const { return immutable_state_.params(); }
  // The device of the kernels; it allocates from BlockCache unless the policy is normal.
  tensorflow::Device* device() const { return device_; }
  int32_t number() const { return number_; }
  // All nodes but the sink, which has no kernel, without the back edges of loops.
  const Dag& dag() const { return dag_; }
  // Null unless the policy is the cost model.
  CostModel* cost_model() const { return cost_model_.get(); }
  KernelCost& kernel_cost() const { return *kernel_cost_; }
  // Whether a kernel reads slices of a checkpoint: such kernels share a cache within a step.
  bool reads_checkpoints() const { return reads_checkpoints_; }
  // Whether the kernel may block its thread until another node of the same step has run, so that no
  // other node may have to wait for that thread.
  bool Blocks(int32_t node) const { return has_blocking_ && blocks_[node]; }
  // Whether the kernel calls a function that may wait until another node of the same step has run.
  // With kernels inline, TensorFlow's While would block its thread until that function has ended.
  bool CallsWaitingFunction(int32_t node) const { return calls_waiting_function_[node]; }
  // TF_DETERMINISTIC_ORDER: nodes run in an order that depends on the graph alone, neither on
  // addresses nor on times.
  bool keeps_order() const { return keeps_order_; }
  // Whether the kernel only waits for others, so that only its launch counts as work.
  bool Waits(int32_t node) const { return waits_[node]; }

  // The number of node 0 in traces; node i has this plus i. The first call registers the nodes'
  // names.
  uint32_t FirstTracedNode() const;

 private:
  // Sets blocks_ and calls_waiting_function_.
  void FindWaiting(const tensorflow::Graph& graph);

  const std::string type_;
  const ExecutorPolicy policy_;
  const CostModel::Settings settings_;
  const int32_t number_;
  tensorflow::ImmutableExecutorState immutable_state_;
  std::unique_ptr<tensorflow::Device> caching_device_;
  tensorflow::Device* device_;
  Dag dag_;
  const bool keeps_order_;
  bool has_blocking_ = false;
  std::vector<bool> blocks_;
  std::vector<bool> calls_waiting_function_;
  std::vector<bool> waits_;
  bool reads_checkpoints_ = false;
  std::unique_ptr<CostModel> cost_model_;
  std::unique_ptr<KernelCost> kernel_cost_;

  // Held while the nodes' names are registered. Lock order: this, then the tracer's mu_.
  mutable std::mutex trace_mu_;
  mutable std::atomic<int64_t> first_traced_{-1};
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_STEP_EXECUTOR_STATE_H_
