#ifndef WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_PROPAGATED_STEP_H_
#define WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_PROPAGATED_STEP_H_

#include "executor/step/executor_state.h"
#include "executor/scheduling/admission.h"
#include "tensorflow/core/common_runtime/executor.h"

namespace workbench {

// Steps in which TensorFlow's propagator says what is ready, so that every graph can be run: loops,
// branches that are not taken, values from other devices. Who runs what, and in which order, is the
// policy's:
//
// - normal: as stock TensorFlow. Cheap nodes run where they got ready, others go to the pool.
// - inline: everything on the calling thread; where the caller does not wait, on one of the pool.
// - cost model: normal until costs are known; then what the longest way hangs on goes first, short
//   nodes are run together, and the calling thread is one of the workers.

// Kernels that block their thread get one of the pool under every policy.

// The calling thread waits, and works where the policy has it work.
// `turn` is the thread's, and paused meanwhile; null where there is none.
absl::Status RunPropagated(const ExecutorShared& shared, const tensorflow::Executor::Args& args,
                           Turn* turn);
void RunPropagatedAsync(const ExecutorShared& shared, const tensorflow::Executor::Args& args,
                        tensorflow::Executor::DoneCallback done);

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_PROPAGATED_STEP_H_
