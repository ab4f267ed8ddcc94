#include "rewriting/copy_nodes.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/platform/errors.h"

namespace workbench {
namespace {

using tensorflow::Node;
using tensorflow::NodeDef;
using tensorflow::OutputTensor;

class Copier {
 public:
  Copier(const CopySet& copy, const std::string& device, NamedGraph* graph)
      : copy_(copy), device_(device), graph_(*graph) {}

  absl::Status Run(const std::vector<Node*>& moved) {
    for (size_t i = 0; i < copy_.from.size(); ++i) {
      OutputTensor from;
      TF_RETURN_IF_ERROR(graph_.FindTensor(copy_.from[i], &from));
      TF_RETURN_IF_ERROR(graph_.FindTensor(copy_.to[i], &substitutes_[from]));
      substituted_.insert(from.node);
    }
    // All nodes before any edge: a loop's nodes read each other.
    copies_.reserve(moved.size());
    for (const Node* node : moved) {
      if (substituted_.contains(node)) continue;
      TF_RETURN_IF_ERROR(graph_.Add(Definition(*node), &copies_[node]));
    }
    for (const Node* node : moved) {
      if (substituted_.contains(node)) continue;
      NodeInputs inputs;
      TF_RETURN_IF_ERROR(Inputs(*node, &inputs));
      TF_RETURN_IF_ERROR(graph_.Connect(copies_[node], inputs));
    }
    return absl::OkStatus();
  }

 private:
  NodeDef Definition(const Node& node) const {
    NodeDef def = node.def();
    def.set_name(absl::StrCat(copy_.prefix, "/", node.name()));
    def.clear_input();
    if (!device_.empty()) {
      def.set_device(device_);
      def.mutable_attr()->erase(tensorflow::kColocationAttrName);
    }
    return def;
  }

  absl::Status Inputs(const Node& node, NodeInputs* inputs) const {
    const NodeInputs old = InputsOf(node);
    for (const OutputTensor& tensor : old.data) {
      if (const auto found = substitutes_.find(tensor); found != substitutes_.end()) {
        inputs->data.push_back(found->second);
      } else if (substituted_.contains(tensor.node)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "copy '", copy_.prefix, "' substitutes '", tensor.node->name(), "', but not '",
            tensor.node->name(), ":", tensor.index, "', which moved node '", node.name(),
            "' reads"));
      } else {
        inputs->data.emplace_back(CopyOf(tensor.node), tensor.index);
      }
    }
    for (Node* before : old.control) {
      if (!substituted_.contains(before)) inputs->control.push_back(CopyOf(before));
    }
    return absl::OkStatus();
  }

  // The node itself when it is not moved.
  Node* CopyOf(Node* node) const {
    const auto found = copies_.find(node);
    return found == copies_.end() ? node : found->second;
  }

  const CopySet& copy_;
  const std::string& device_;
  NamedGraph& graph_;
  absl::flat_hash_map<OutputTensor, OutputTensor, OutputTensor::Hash> substitutes_;
  absl::flat_hash_set<const Node*> substituted_;
  absl::flat_hash_map<const Node*, Node*> copies_;
};

}  // namespace

absl::Status CopyNodes(const std::vector<Node*>& moved, const CopySet& copy,
                       const std::string& device, NamedGraph* graph) {
  return Copier(copy, device, graph).Run(moved);
}

}  // namespace workbench
