#ifndef WORKBENCH_REWRITING_COPY_NODES_H_
#define WORKBENCH_REWRITING_COPY_NODES_H_

#include <string>
#include <vector>

#include "rewriting/named_graph.h"
#include "rewriting/stage_plan.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace workbench {

// Adds "<prefix>/<name>" for each moved node that `copy` does not substitute. A copy reads what the
// copy set substitutes, else copies of moved nodes, else what the node reads. It waits for copies
// of what the node waits for, or the same; not for a substituted node, whose run it stands for.
//
// With a `device` every copy asks for that, and is colocated with nothing.
absl::Status CopyNodes(const std::vector<tensorflow::Node*>& moved, const CopySet& copy,
                       const std::string& device, NamedGraph* graph);

}  // namespace workbench

#endif  // WORKBENCH_REWRITING_COPY_NODES_H_
