#ifndef WORKBENCH_REWRITING_STAGES_APPLY_STAGE_PLAN_H_
#define WORKBENCH_REWRITING_STAGES_APPLY_STAGE_PLAN_H_

#include "rewriting/plan/stage_plan.h"
#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace workbench {

// Makes the stages of `plan` run ahead. For each, in order:
//   1. the moved nodes are copied, once per copy set, to feed the stage's puts;
//   2. the plan's own nodes, the buffer's ops, are added, or replace those of the same name;
//   3. each carried node becomes an Identity of what the stage's take delivers, under its own name,
//      so that its readers, fetches and feeds stay as they are; what an earlier stage of the same
//      source carried, and this one does not, becomes what the user wrote again.
// A graph with none of the moved nodes is left alone: it is not the whole graph yet.
//
// `devices` may be null. After an error the graph is half edited and must not be run.
absl::Status ApplyStagePlan(const StagePlan& plan, const tensorflow::DeviceSet* devices,
                            tensorflow::Graph* graph);

}  // namespace workbench

#endif  // WORKBENCH_REWRITING_STAGES_APPLY_STAGE_PLAN_H_
