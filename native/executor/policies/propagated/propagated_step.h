#ifndef WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_PROPAGATED_STEP_H_
#define WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_PROPAGATED_STEP_H_

#include "executor/scheduling/admission.h"
#include "executor/step/executor_state.h"
#include "tensorflow/core/common_runtime/executor.h"

namespace workbench {

// Steps in which TensorFlow's propagator finds the nodes that are ready, so that every graph can be
// run: loops, branches that are not taken, values from other devices. The policy decides which
// thread runs which node, and in which order:
//
// - normal (normal_policy_inl.h): as stock TensorFlow. Cheap nodes run on the thread that made them
//   ready, expensive ones go to the pool.
// - inline (inline_policy_inl.h): all nodes run on the calling thread, or on one thread of the pool
//   if the caller does not wait.
// - cost model (cost_model_policy_inl.h): normal until costs are known. Then the node with the
//   longest path to the sink goes first, short nodes run in batches, and the calling thread is a
//   worker.
//
// Under every policy, kernels that block their thread run on a thread of the pool.

// Runs a step; the calling thread waits for its end, and works under inline and the cost model.
// `admission` is the thread's, and paused while the thread waits; null if the thread has none.
absl::Status RunPropagated(const ExecutorState& executor, const tensorflow::Executor::Args& args,
                           Admission* admission);
void RunPropagatedAsync(const ExecutorState& executor, const tensorflow::Executor::Args& args,
                        tensorflow::Executor::DoneCallback done);

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_PROPAGATED_STEP_H_
