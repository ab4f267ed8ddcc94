#include "executor/policies/propagated/propagated_step.h"

#include <utility>

#include "executor/policies/propagated/cost_model_policy_inl.h"
#include "executor/policies/propagated/inline_policy_inl.h"
#include "executor/policies/propagated/normal_policy_inl.h"
#include "executor/policies/propagated/queue_inl.h"
#include "executor/policies/propagated/run_node_inl.h"
#include "executor/policies/propagated/step_inl.h"
#include "tensorflow/core/common_runtime/propagator_state.h"
#include "tensorflow/core/common_runtime/simple_propagator_state.h"

namespace workbench {

using tensorflow::Executor;

absl::Status RunPropagated(const ExecutorState& executor, const Executor::Args& args,
                           Admission* admission) {
  if (executor.immutable_state().requires_control_flow_support()) {
    return PropagatedStep<tensorflow::PropagatorState>(executor, args, /*has_caller=*/true)
        .Run(admission);
  }
  return PropagatedStep<tensorflow::SimplePropagatorState>(executor, args, /*has_caller=*/true)
      .Run(admission);
}

void RunPropagatedAsync(const ExecutorState& executor, const Executor::Args& args,
                        Executor::DoneCallback done) {
  if (executor.immutable_state().requires_control_flow_support()) {
    PropagatedStep<tensorflow::PropagatorState>::RunAsync(executor, args, std::move(done));
  } else {
    PropagatedStep<tensorflow::SimplePropagatorState>::RunAsync(executor, args, std::move(done));
  }
}

}  // namespace workbench
