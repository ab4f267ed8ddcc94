#ifndef WORKBENCH_REWRITING_CHOICE_RUN_ENDS_H_
#define WORKBENCH_REWRITING_CHOICE_RUN_ENDS_H_

#include <string>

#include "rewriting/plan/stage_plan.h"
#include "tensorflow/core/graph/graph.h"

namespace workbench {

// Why a run needs the user's own nodes, a clause; empty where those of the plan do. The graph has
// what the run needs alone, its choices still in it.
//   1. It feeds a tensor that is computed within an op of the plan, or that a stage computes ahead,
//      or connects another tensor to it.
//   2. It needs some of the nodes, and not all, for which one op of the plan stands.
//   3. It may be a partial run that fetches what the user's nodes compute of fewer feeds than the
//      plan's do.
//   4. It fetches a value within an op of the plan that is read from a variable, which another op
//      of the plan may change before.
std::string NeedsStock(const StagePlan& plan, const tensorflow::Graph& graph);

}  // namespace workbench

#endif  // WORKBENCH_REWRITING_CHOICE_RUN_ENDS_H_
