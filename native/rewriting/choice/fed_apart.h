#ifndef WORKBENCH_REWRITING_CHOICE_FED_APART_H_
#define WORKBENCH_REWRITING_CHOICE_FED_APART_H_

#include <string>

#include "rewriting/plan/stage_plan.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace workbench {

inline constexpr char kChoiceInputOp[] = "WorkbenchChoiceInput";
inline constexpr char kChoiceSourceOp[] = "WorkbenchChoiceSource";

// One op of a plan may do what several of the user's nodes did, which are fed apart. A direct
// session refuses a fetch of a partial run that depends on a feed which is still to come, and looks
// at both branches of a choice. So such an op reads its inputs in the graphs of runs alone:
//
//   user's tensor -> WorkbenchChoiceSource -> (control) choices that depend on the same feeds
//   WorkbenchChoiceInput -> op of the plan

// Takes those edges out of a session's graph whose choices are added.
absl::Status HideInputs(const PlannedFusion& fusion, tensorflow::Graph* graph);

// Puts them back into the graph of a run. Returns why the run needs the user's own nodes, a clause,
// where it lacks one of the tensors; else empty.
std::string ShowInputs(tensorflow::Graph* graph);

}  // namespace workbench

#endif  // WORKBENCH_REWRITING_CHOICE_FED_APART_H_
