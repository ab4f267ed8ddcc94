#ifndef WORKBENCH_REWRITING_RESTART_GRAPH_STAGES_H_
#define WORKBENCH_REWRITING_RESTART_GRAPH_STAGES_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "rewriting/graph/named_graph.h"
#include "rewriting/plan/stage_plan_rules.h"
#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace workbench {

// Ids of nodes.
using Ids = std::set<int>;

// A stage of a session's graph, as its puts and its resumes show it.
struct GraphStage {
  std::string name;
  std::vector<tensorflow::Node*> puts;
  std::vector<tensorflow::Node*> resumes;
  Ids own;     // Whatever a put needs.
  Ids before;  // The same, and what the stages need that it takes from.
  std::set<std::string> takes_from;  // Other buffers.
  int depth = 0;  // Stages in line before it.
};
using GraphStages = std::map<std::string, GraphStage>;  // By buffer.

// "container/shared_name" of an op of a buffer.
std::string BufferOf(const tensorflow::Node& node);

GraphStages FindStages(const tensorflow::Graph& graph, const NamedGraph& named);

// Marks the takes that stages make, and fills `before` and `depth`.
void FollowTakes(tensorflow::Graph* graph, GraphStages* stages);

// Copies the attributes that name a stage's buffer and its place, and the others of these names that
// the put has.
void CopyBufferAttrs(const GraphStage& stage, const std::vector<std::string>& others,
                     tensorflow::NodeDef* def);

// Adds a node without inputs that goes where `beside` goes; `def` has its op and attributes.
absl::Status AddBeside(const tensorflow::Node& beside, tensorflow::NodeDef def,
                       tensorflow::Graph* graph, NamedGraph* named, tensorflow::Node** node);

// A node for AddBeside that reads a handle, which keeps it on the device of `beside`.
tensorflow::NodeDef OpOnHandle(const char* op, const char* name, const tensorflow::Node& beside,
                               const tensorflow::OutputTensor& handle);

// Before each of `nodes`, ops of the stage's buffer, comes the watch: from then on whatever
// initializes the inputs finds the stage.
absl::Status AddWatch(const GraphStage& stage, const std::vector<tensorflow::Node*>& nodes,
                      tensorflow::Graph* graph, NamedGraph* named);

bool HasSeveralTasks(const tensorflow::DeviceSet* devices);

}  // namespace workbench

#endif  // WORKBENCH_REWRITING_RESTART_GRAPH_STAGES_H_
