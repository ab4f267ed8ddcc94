#include "rewriting/graph/named_graph.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/tensor_id.h"
#include "tensorflow/core/platform/errors.h"

namespace workbench {

using tensorflow::DataTypeString;
using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeDef;
using tensorflow::OutputTensor;

NodeInputs InputsOf(const Node& node) {
  NodeInputs inputs;
  inputs.data.resize(node.num_inputs());
  for (const Edge* edge : node.in_edges()) {
    if (!edge->IsControlEdge()) {
      inputs.data[edge->dst_input()] = {edge->src(), edge->src_output()};
    } else if (edge->src()->IsOp()) {
      inputs.control.push_back(edge->src());
    }
  }
  return inputs;
}

NodeDef DefinitionOf(const Node& node) {
  NodeDef def = node.def();
  def.clear_input();
  const NodeInputs inputs = InputsOf(node);
  for (const OutputTensor& tensor : inputs.data) {
    Graph::AddInput(&def, tensor.node->name(), tensor.index);
  }
  for (const Node* before : inputs.control) {
    Graph::AddInput(&def, before->name(), Graph::kControlSlot);
  }
  return def;
}

NamedGraph::NamedGraph(Graph* graph) : graph_(graph) {
  nodes_.reserve(graph->num_op_nodes());
  for (Node* node : graph->op_nodes()) nodes_.emplace(node->name(), node);
}

Node* NamedGraph::Find(absl::string_view name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : found->second;
}

const tensorflow::FunctionDef* NamedGraph::FindFunction(const std::string& name) const {
  return graph_->flib_def().Find(name);
}

absl::Status NamedGraph::FindTensor(absl::string_view name, OutputTensor* tensor) const {
  const tensorflow::TensorId id = tensorflow::ParseTensorName(name);
  Node* node = Find(id.node());
  if (node == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor '", name, "' names no node of the graph"));
  }
  // An index of more than 32 bits comes back as another one.
  const bool exact = name == id.node() || name == absl::StrCat(id.node(), ":", id.index());
  if (!exact || id.index() < 0 || id.index() >= node->num_outputs()) {
    return absl::InvalidArgumentError(absl::StrCat("tensor '", name, "' does not exist: node '",
                                                   node->name(), "' has ", node->num_outputs(),
                                                   " outputs"));
  }
  *tensor = {node, id.index()};
  return absl::OkStatus();
}

absl::Status NamedGraph::Add(NodeDef def, Node** node) {
  if (Find(def.name()) != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("node '", def.name(), "' cannot be added: the graph has one of that name"));
  }
  TF_RETURN_IF_ERROR(AddUnindexed(std::move(def), node));
  nodes_.emplace((*node)->name(), *node);
  return absl::OkStatus();
}

absl::Status NamedGraph::Replace(Node* old, NodeDef def, Node** node) {
  TF_RETURN_IF_ERROR(AddUnindexed(std::move(def), node));
  struct Use {
    Node* node;
    int output;
    int input;
  };
  std::vector<Use> uses;
  uses.reserve(old->out_edges().size());
  for (const Edge* edge : old->out_edges()) {
    if (!edge->dst()->IsOp()) continue;
    uses.push_back({edge->dst(), edge->src_output(), edge->dst_input()});
    if (edge->IsControlEdge()) continue;
    const int output = edge->src_output();
    if (output >= (*node)->num_outputs() ||
        (*node)->output_type(output) != old->output_type(output)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "node '", old->name(), "' (", old->type_string(), ") cannot be replaced by a ",
          (*node)->type_string(), " that has no output ", output, " of type ",
          DataTypeString(old->output_type(output)), ", which '", edge->dst()->name(), "' reads"));
    }
  }
  graph_->RemoveNode(old);
  nodes_[(*node)->name()] = *node;
  for (const Use& use : uses) {
    if (use.output == Graph::kControlSlot) {
      // The reader's NodeDef has this input already: the name is the same.
      graph_->AddControlEdge(*node, use.node, /*allow_duplicates=*/true);
    } else {
      graph_->AddEdge(*node, use.output, use.node, use.input);
    }
  }
  return absl::OkStatus();
}

absl::Status NamedGraph::Connect(Node* node, const NodeInputs& inputs) {
  if (static_cast<int>(inputs.data.size()) != node->num_inputs()) {
    return absl::InvalidArgumentError(
        absl::StrCat("node '", node->name(), "' is given ", inputs.data.size(), " inputs; its op ",
                     node->type_string(), " has ", node->num_inputs()));
  }
  for (int i = 0; i < node->num_inputs(); ++i) {
    const OutputTensor& input = inputs.data[i];
    if (input.node == node) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " of node '", node->name(), "' is its own output"));
    }
    const tensorflow::DataType found = input.node->output_type(input.index);
    if (!tensorflow::TypesCompatible(node->input_type(i), found)) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " of node '", node->name(), "' is '", input.node->name(), ":",
                       input.index, "' of type ", DataTypeString(found), "; expected type ",
                       DataTypeString(node->input_type(i))));
    }
    Graph::AddInput(node->mutable_def(), input.node->name(), input.index);
    graph_->AddEdge(input.node, input.index, node, i);
  }
  for (Node* before : inputs.control) {
    if (before == node) {
      return absl::InvalidArgumentError(
          absl::StrCat("node '", node->name(), "' would wait for itself"));
    }
    // Duplicates are allowed because looking for one is linear in the number of inputs.
    Graph::AddInput(node->mutable_def(), before->name(), Graph::kControlSlot);
    graph_->AddControlEdge(before, node, /*allow_duplicates=*/true);
  }
  return absl::OkStatus();
}

absl::Status NamedGraph::AddUnindexed(NodeDef def, Node** node) {
  const tensorflow::OpDef* op = nullptr;
  if (!graph_->op_registry()->LookUpOpDef(def.op(), &op).ok()) {
    return absl::InvalidArgumentError(absl::StrCat("node '", def.name(), "' has op '", def.op(),
                                                   "', which this process does not know"));
  }
  tensorflow::AddDefaultsToNodeDef(*op, &def);
  const std::string name = def.name();
  absl::StatusOr<Node*> added = graph_->AddNode(std::move(def));
  if (!added.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("node '", name, "' is malformed: ", added.status().message()));
  }
  *node = *added;
  return absl::OkStatus();
}

}  // namespace workbench
