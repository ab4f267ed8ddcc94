#include "rewriting/restart/restart_in_functions.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rewriting/restart/initializers.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/platform/errors.h"

namespace workbench {
namespace {

using tensorflow::AttrValue;
using tensorflow::FunctionDef;
using tensorflow::FunctionLibraryDefinition;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeDef;

constexpr char kSuffix[] = "_workbench_restart";

// A name that no node of the function has.
std::string NewName(const FunctionDef& function, std::string name) {
  const auto taken = [&function](const std::string& name) {
    for (const NodeDef& node : function.node_def()) {
      if (node.name() == name) return true;
    }
    for (const auto& argument : function.signature().input_arg()) {
      if (argument.name() == name) return true;
    }
    return false;
  };
  while (taken(name)) absl::StrAppend(&name, "_");
  return name;
}

// An op on the handle that comes when the node could: where a branch is not taken, neither does.
void AddBefore(const char* op, int node, int handle, FunctionDef* function) {
  NodeDef added;
  NodeDef* before = function->mutable_node_def(node);
  added.set_op(op);
  added.set_name(NewName(*function, absl::StrCat(before->name(), kSuffix)));
  added.set_device(before->device());
  (*added.mutable_attr())["T"].set_type(tensorflow::DT_RESOURCE);
  if (added.op() == kInputSaveOp) (*added.mutable_attr())["saves"].set_s(before->name());
  added.add_input(before->input(handle));
  for (const std::string& input : before->input()) {
    if (absl::StartsWith(input, "^")) added.add_input(input);
  }
  before->add_input(absl::StrCat("^", added.name()));
  *function->add_node_def() = std::move(added);
}

class Copies {
 public:
  Copies(Graph* graph, FunctionLibraryDefinition* library)
      : own_(graph->mutable_flib_def()), library_(library) {}

  // The name of the function's copy; empty when it needs none.
  absl::Status Copy(const std::string& name, std::string* copy) {
    const auto known = copies_.find(name);
    if (known != copies_.end()) {
      *copy = known->second;
      return absl::OkStatus();
    }
    // Until it is known otherwise: the function may call itself.
    copies_[name] = "";
    const FunctionDef* found = own_->Find(name);
    if (found == nullptr) return absl::OkStatus();
    FunctionDef function = *found;
    bool changed = false;
    TF_RETURN_IF_ERROR(Change(&function, &changed));
    if (!changed) return absl::OkStatus();
    *copy = copies_[name] = absl::StrCat(name, kSuffix);
    function.mutable_signature()->set_name(*copy);
    return Add(function);
  }

  // Has the attribute call copies.
  absl::Status CallCopies(AttrValue* value, bool* changed) {
    if (value->has_func()) TF_RETURN_IF_ERROR(CallCopy(value->mutable_func(), changed));
    if (!value->has_list()) return absl::OkStatus();
    for (auto& function : *value->mutable_list()->mutable_func()) {
      TF_RETURN_IF_ERROR(CallCopy(&function, changed));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CallCopy(tensorflow::NameAttrList* function, bool* changed) {
    std::string copy;
    TF_RETURN_IF_ERROR(Copy(function->name(), &copy));
    if (copy.empty()) return absl::OkStatus();
    function->set_name(copy);
    *changed = true;
    return absl::OkStatus();
  }

  absl::Status Change(FunctionDef* function, bool* changed) {
    const int nodes = function->node_def_size();
    for (int i = 0; i < nodes; ++i) {
      NodeDef* node = function->mutable_node_def(i);
      const int handle = HandleOfInitializer(node->op());
      if (handle >= 0 && handle < node->input_size()) {
        AddBefore(kInputRestartOp, i, handle, function);
        *changed = true;
        continue;
      }
      const int saved = HandleOfSave(node->op());
      if (saved >= 0 && saved < node->input_size()) {
        AddBefore(kInputSaveOp, i, saved, function);
        *changed = true;
        continue;
      }
      std::string copy;
      TF_RETURN_IF_ERROR(Copy(node->op(), &copy));
      if (!copy.empty()) {
        node->set_op(copy);
        *changed = true;
      }
      for (auto& [name, value] : *node->mutable_attr()) {
        TF_RETURN_IF_ERROR(CallCopies(&value, changed));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Add(const FunctionDef& function) {
    // It is there when the session has extended its graph.
    for (FunctionLibraryDefinition* library : {own_, library_}) {
      if (library == nullptr || library->Contains(function.signature().name())) continue;
      TF_RETURN_IF_ERROR(library->AddFunctionDef(function));
    }
    return absl::OkStatus();
  }

  FunctionLibraryDefinition* const own_;
  FunctionLibraryDefinition* const library_;
  absl::flat_hash_map<std::string, std::string> copies_;
};

absl::Status CallCopies(Node* node, NamedGraph* named, Copies* copies) {
  NodeDef def = node->def();
  bool changed = false;
  for (auto& [name, value] : *def.mutable_attr()) {
    bool in_attribute = false;
    TF_RETURN_IF_ERROR(copies->CallCopies(&value, &in_attribute));
    changed = changed || in_attribute;
  }
  std::string copy;
  TF_RETURN_IF_ERROR(copies->Copy(node->type_string(), &copy));
  if (!copy.empty()) def.set_op(copy);
  if (!changed && copy.empty()) return absl::OkStatus();
  const NodeInputs inputs = InputsOf(*node);
  def.clear_input();
  Node* calling = nullptr;
  TF_RETURN_IF_ERROR(named->Replace(node, std::move(def), &calling));
  return named->Connect(calling, inputs);
}

}  // namespace

absl::Status RestartInFunctions(const std::set<int>& left_alone, Graph* graph, NamedGraph* named,
                                FunctionLibraryDefinition* library) {
  if (graph->flib_def().num_functions() == 0) return absl::OkStatus();
  std::vector<Node*> nodes;
  for (Node* node : graph->op_nodes()) {
    if (left_alone.count(node->id()) == 0) nodes.push_back(node);
  }
  Copies copies(graph, library);
  for (Node* node : nodes) TF_RETURN_IF_ERROR(CallCopies(node, named, &copies));
  return absl::OkStatus();
}

}  // namespace workbench
