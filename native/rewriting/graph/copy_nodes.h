#ifndef WORKBENCH_REWRITING_GRAPH_COPY_NODES_H_
#define WORKBENCH_REWRITING_GRAPH_COPY_NODES_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "rewriting/graph/named_graph.h"
#include "rewriting/plan/stage_plan.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace workbench {

// Adds "<prefix>/<name>" for each moved node that `copy` does not substitute. A copy reads what the
// copy set substitutes, else copies of moved nodes, else what the node reads. It waits for copies
// of what the node waits for, or the same; not for a substituted node, whose run it stands for.
//
// With a `device` every copy asks for that, and is colocated with nothing. The names of the copies
// go into `added`. `record` becomes what the copies have, as "node:i", of the outputs of the
// `carried` nodes, which are moved too.
absl::Status CopyNodes(const std::vector<tensorflow::Node*>& moved,
                       const std::vector<tensorflow::Node*>& carried, const CopySet& copy,
                       const std::string& device, NamedGraph* graph,
                       absl::flat_hash_set<std::string>* added, std::vector<std::string>* record);

}  // namespace workbench

#endif  // WORKBENCH_REWRITING_GRAPH_COPY_NODES_H_
