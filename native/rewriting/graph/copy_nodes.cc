#include "rewriting/graph/copy_nodes.h"

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

  absl::Status Run(const std::vector<Node*>& moved, absl::flat_hash_set<std::string>* added) {
    TF_RETURN_IF_ERROR(Substitute(moved));
    // All nodes before any edge: a loop's nodes read each other.
    copies_.reserve(moved.size());
    for (const Node* node : moved) {
      if (substituted_.contains(node)) continue;
      Node* copy = nullptr;
      TF_RETURN_IF_ERROR(graph_.Add(Definition(*node), &copy));
      added->insert(copy->name());
      copies_[node] = copy;
    }
    for (const Node* node : moved) {
      if (substituted_.contains(node)) continue;
      NodeInputs inputs;
      TF_RETURN_IF_ERROR(Inputs(*node, &inputs));
      TF_RETURN_IF_ERROR(graph_.Connect(copies_[node], inputs));
    }
    return absl::OkStatus();
  }

  absl::Status Record(const std::vector<Node*>& carried, std::vector<std::string>* record) const {
    for (Node* node : carried) {
      for (int i = 0; i < node->num_outputs(); ++i) {
        OutputTensor tensor;
        TF_RETURN_IF_ERROR(Find({node, i}, "which is carried", &tensor));
        record->push_back(absl::StrCat(tensor.node->name(), ":", tensor.index));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Substitute(const std::vector<Node*>& moved) {
    const absl::flat_hash_set<const Node*> may_be(moved.begin(), moved.end());
    for (size_t i = 0; i < copy_.from.size(); ++i) {
      OutputTensor from;
      OutputTensor to;
      TF_RETURN_IF_ERROR(graph_.FindTensor(copy_.from[i], &from));
      TF_RETURN_IF_ERROR(graph_.FindTensor(copy_.to[i], &to));
      if (!may_be.contains(from.node)) {
        return absl::InvalidArgumentError(
            absl::StrCat("copy '", copy_.prefix, "' substitutes '", copy_.from[i],
                         "', which is no output of a moved node"));
      }
      if (!substitutes_.emplace(from, to).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("copy '", copy_.prefix, "' substitutes '", copy_.from[i], "' twice"));
      }
      substituted_.insert(from.node);
    }
    return absl::OkStatus();
  }

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
      TF_RETURN_IF_ERROR(Find(tensor, absl::StrCat("which moved node '", node.name(), "' reads"),
                              &inputs->data.emplace_back()));
    }
    for (Node* before : old.control) {
      if (!substituted_.contains(before)) inputs->control.push_back(CopyOf(before));
    }
    return absl::OkStatus();
  }

  // What the copies have in the place of `tensor`; `reason` says why one is needed.
  absl::Status Find(const OutputTensor& tensor, const std::string& reason,
                    OutputTensor* found) const {
    if (const auto substitute = substitutes_.find(tensor); substitute != substitutes_.end()) {
      *found = substitute->second;
      return absl::OkStatus();
    }
    if (substituted_.contains(tensor.node)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "copy '", copy_.prefix, "' substitutes '", tensor.node->name(), "', but not '",
          tensor.node->name(), ":", tensor.index, "', ", reason));
    }
    *found = {CopyOf(tensor.node), tensor.index};
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

absl::Status CopyNodes(const std::vector<Node*>& moved, const std::vector<Node*>& carried,
                       const CopySet& copy, const std::string& device, NamedGraph* graph,
                       absl::flat_hash_set<std::string>* added, std::vector<std::string>* record) {
  Copier copier(copy, device, graph);
  TF_RETURN_IF_ERROR(copier.Run(moved, added));
  return copier.Record(carried, record);
}

}  // namespace workbench
