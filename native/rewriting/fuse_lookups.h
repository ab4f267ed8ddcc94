#ifndef WORKBENCH_REWRITING_FUSE_LOOKUPS_H_
#define WORKBENCH_REWRITING_FUSE_LOOKUPS_H_

#include "rewriting/graph/named_graph.h"
#include "rewriting/plan/stage_plan.h"
#include "tensorflow/core/platform/status.h"

namespace workbench {

// Adds the nodes of a fusion to a graph, and puts those that replace others in their places. A graph
// that has none of these, such as that of a server before the model comes, stays as it is.
absl::Status FuseLookups(const PlannedFusion& fusion, NamedGraph* graph);

}  // namespace workbench

#endif  // WORKBENCH_REWRITING_FUSE_LOOKUPS_H_
