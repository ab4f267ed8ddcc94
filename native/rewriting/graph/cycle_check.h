#ifndef WORKBENCH_REWRITING_GRAPH_CYCLE_CHECK_H_
#define WORKBENCH_REWRITING_GRAPH_CYCLE_CHECK_H_

#include <string>
#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace workbench {

// A take waits for the puts of its stage, though no edge of the graph says so.
struct StageWait {
  std::string stage;
  const tensorflow::Node* take = nullptr;
  std::vector<const tensorflow::Node*> puts;
};

// Fails, and lists the nodes, when a node would wait for itself: along the graph's edges, or along
// these and the waits, which no run would survive. The back edges of loops are none. Linear time.
absl::Status CheckNoCycle(const tensorflow::Graph& graph, const std::vector<StageWait>& waits);

}  // namespace workbench

#endif  // WORKBENCH_REWRITING_GRAPH_CYCLE_CHECK_H_
