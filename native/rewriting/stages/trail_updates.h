#ifndef WORKBENCH_REWRITING_STAGES_TRAIL_UPDATES_H_
#define WORKBENCH_REWRITING_STAGES_TRAIL_UPDATES_H_

#include <string>

#include "absl/container/flat_hash_set.h"
#include "rewriting/graph/named_graph.h"
#include "rewriting/plan/stage_plan.h"
#include "tensorflow/core/platform/status.h"

namespace workbench {

// Lets the updates of a stage's plan trail the step, in the run that put its item:
//   1. what the updates need on their task, and they themselves, are copied, and read what the stage's
//      WorkbenchBufferAwait delivers in the place of what the step computes;
//   2. each update becomes a NoOp behind the WorkbenchBufferReturn that returns this;
//   3. what brings the stage its items waits for its WorkbenchBufferBegin;
//   4. the variables that the updates write wait for its WorkbenchBufferSettle, so that whoever else
//      reads or writes them lacks no update; the stage's copies have nodes of their own for them.
// The stage has been applied otherwise. Adds the names of the copies to `added`.
absl::Status TrailUpdates(const PlannedStage& stage, tensorflow::Graph* graph, NamedGraph* named,
                          absl::flat_hash_set<std::string>* added);

}  // namespace workbench

#endif  // WORKBENCH_REWRITING_STAGES_TRAIL_UPDATES_H_
