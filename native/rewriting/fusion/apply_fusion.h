#ifndef WORKBENCH_REWRITING_FUSION_APPLY_FUSION_H_
#define WORKBENCH_REWRITING_FUSION_APPLY_FUSION_H_

#include <vector>

#include "rewriting/graph/named_graph.h"
#include "rewriting/plan/stage_plan.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/platform/status.h"

namespace workbench {

// Adds the nodes of a fusion to a graph, and puts those that replace others in their places. A graph
// that has none of these, such as that of a server before the model comes, stays as it is.
//
// requires: each node of the fusion's region is in the graph, with the op, attributes, inputs,
//   control inputs and device that it had when the plan was made; each source has its op and
//   attributes. Each function of the region is in the graph's library, with the same nodes.
// ensures: `originals` has what the nodes were in whose place a run may need them.
absl::Status ApplyFusion(const PlannedFusion& fusion, NamedGraph* graph,
                         std::vector<tensorflow::NodeDef>* originals);

}  // namespace workbench

#endif  // WORKBENCH_REWRITING_FUSION_APPLY_FUSION_H_
