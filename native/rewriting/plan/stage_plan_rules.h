#ifndef WORKBENCH_REWRITING_PLAN_STAGE_PLAN_RULES_H_
#define WORKBENCH_REWRITING_PLAN_STAGE_PLAN_RULES_H_

#include <string>

#include "rewriting/plan/stage_plan.h"
#include "tensorflow/core/platform/status.h"

namespace workbench {

inline constexpr char kPutOp[] = "WorkbenchBufferPut";
inline constexpr char kTakeOp[] = "WorkbenchBufferTake";
inline constexpr char kBufferOps[] = "WorkbenchBuffer";  // The name of each op of a buffer begins so.

// An error of the plan itself: no graph would make it right. `owner` is, say, "stage 'auto'".
absl::Status MalformedPlan(const std::string& owner, const std::string& text);

// Requires what a plan keeps whatever the graph, so that applying it may rely on it:
//   1. a stage has a name of its own;
//   2. it moves a node once, and carries some of the moved nodes once, the source among them;
//   3. a copy set has a prefix of its own that can begin a node's name; there are no more of them
//      than puts;
//   4. a node of the plan has a valid name that no other node of the plan has, moved or its own, is
//      an op of a buffer or a placeholder, and asks for a device that can be parsed;
//   5. take is one of the stage's own nodes, and takes;
//   6. where updates trail, they are among the nodes that are copied for it, none of which is moved
//      ahead, and the ops that they need are the stage's own nodes.
absl::Status CheckStagePlan(const StagePlan& plan);

}  // namespace workbench

#endif  // WORKBENCH_REWRITING_PLAN_STAGE_PLAN_RULES_H_
