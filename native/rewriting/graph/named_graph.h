#ifndef WORKBENCH_REWRITING_GRAPH_NAMED_GRAPH_H_
#define WORKBENCH_REWRITING_GRAPH_NAMED_GRAPH_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace workbench {

// What a node reads and waits for.
struct NodeInputs {
  std::vector<tensorflow::OutputTensor> data;
  std::vector<tensorflow::Node*> control;
};

NodeInputs InputsOf(const tensorflow::Node& node);

// The node's definition with its inputs as they are now.
tensorflow::NodeDef DefinitionOf(const tensorflow::Node& node);

// A graph whose nodes are found by name. Every edit goes through it, so that names and graph agree.
class NamedGraph {
 public:
  // Does not own the graph.
  explicit NamedGraph(tensorflow::Graph* graph);
  NamedGraph(const NamedGraph&) = delete;
  NamedGraph& operator=(const NamedGraph&) = delete;

  // Null when there is none.
  tensorflow::Node* Find(absl::string_view name) const;

  // Finds "node:i".
  absl::Status FindTensor(absl::string_view name, tensorflow::OutputTensor* tensor) const;

  // Null when there is none; of the graph's library.
  const tensorflow::FunctionDef* FindFunction(const std::string& name) const;

  // Adds a node without inputs; fails when its name exists, or its op is unknown.
  absl::Status Add(tensorflow::NodeDef def, tensorflow::Node** node);

  // Puts a node without inputs in the place of `old`, which is deleted: what read `old`, or waited
  // for it, now does so with the new node.
  absl::Status Replace(tensorflow::Node* old, tensorflow::NodeDef def, tensorflow::Node** node);

  // Gives a node without inputs its inputs; fails unless their number and types fit, and for one of
  // its own: `Replace` would keep that edge, to a node that is no more.
  absl::Status Connect(tensorflow::Node* node, const NodeInputs& inputs);

 private:
  absl::Status AddUnindexed(tensorflow::NodeDef def, tensorflow::Node** node);

  tensorflow::Graph* const graph_;
  absl::flat_hash_map<std::string, tensorflow::Node*> nodes_;
};

}  // namespace workbench

#endif  // WORKBENCH_REWRITING_GRAPH_NAMED_GRAPH_H_
