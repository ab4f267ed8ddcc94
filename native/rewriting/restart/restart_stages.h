#ifndef WORKBENCH_REWRITING_RESTART_RESTART_STAGES_H_
#define WORKBENCH_REWRITING_RESTART_RESTART_STAGES_H_

#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/platform/status.h"

namespace workbench {

// Lets the stages of a process begin again when their input is initialized again:
//   1. before the resume of a stage comes a WorkbenchBufferWatch, which names the iterators and
//      readers that it reads: directly, through another stage, or through what it is fed;
//   2. before each op that initializes an iterator or a reader (MakeIterator and the like), in the
//      graph or in a function that it calls, comes a WorkbenchInputRestart of what reads that;
//   3. a take that another stage's put needs gets the attribute `ahead`;
//   4. the state of an iterator is saved with what stages have read ahead of it, see saved_inputs.h;
//   5. a step that reads what a stage reads ahead of it fails, see source_reads.h.
// An initializer on the staged side itself is left alone. In a cluster of several tasks, which may
// not all have the library, so is a graph without a stage.
absl::Status RestartStages(const tensorflow::GraphOptimizationPassOptions& options);

}  // namespace workbench

#endif  // WORKBENCH_REWRITING_RESTART_RESTART_STAGES_H_
