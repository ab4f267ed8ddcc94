#ifndef WORKBENCH_REWRITING_RESTART_STAGES_H_
#define WORKBENCH_REWRITING_RESTART_STAGES_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace workbench {

// Lets the stages of a graph begin again when their input is initialized again:
//   1. before each op that initializes an iterator or a reader (MakeIterator and the like) comes a
//      WorkbenchBufferRestart of each stage that reads it, directly, through another stage, or
//      through what is fed to the staged side;
//   2. a take that another stage's put needs gets the attribute `ahead`.
// An initializer on the staged side itself is left alone. A graph without a stage is not changed.
absl::Status RestartStages(tensorflow::Graph* graph);

}  // namespace workbench

#endif  // WORKBENCH_REWRITING_RESTART_STAGES_H_
