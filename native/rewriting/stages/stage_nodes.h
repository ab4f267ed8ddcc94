#ifndef WORKBENCH_REWRITING_STAGES_STAGE_NODES_H_
#define WORKBENCH_REWRITING_STAGES_STAGE_NODES_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "rewriting/graph/named_graph.h"
#include "rewriting/plan/stage_plan.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace workbench {

// An error of a plan that another graph might fit.
absl::Status RefusedPlan(const std::string& text);

// Gives `node`, which has no inputs, those that its definition names.
absl::Status ConnectByName(const tensorflow::NodeDef& def, tensorflow::Node* node,
                           NamedGraph* graph);

// Adds the stage's own nodes; a put may come in the place of a put of that name, which is not one
// that the plan `added`. Adds their names to it.
absl::Status AddOwnNodes(const PlannedStage& stage, NamedGraph* graph,
                         absl::flat_hash_set<std::string>* added);

// Requires that what the puts put in is what the take delivers in the place of the carried nodes:
//   1. the take's outputs have the dtypes of the carried nodes' outputs;
//   2. each put puts one of `records`, what the copies compute of these outputs, as "node:i";
//   3. the stage's own ops of a buffer are ops of one buffer, and agree about its items.
absl::Status CheckRecord(const PlannedStage& stage, const std::vector<tensorflow::Node*>& carried,
                         const std::vector<std::vector<std::string>>& records,
                         const NamedGraph& graph);

}  // namespace workbench

#endif  // WORKBENCH_REWRITING_STAGES_STAGE_NODES_H_
