#include "rewriting/fusion/apply_fusion.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rewriting/graph/same_nodes.h"
#include "rewriting/stages/stage_nodes.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"

namespace workbench {
namespace {

using tensorflow::FunctionDef;
using tensorflow::GraphDef;
using tensorflow::Node;
using tensorflow::NodeDef;
using Arguments = google::protobuf::RepeatedPtrField<tensorflow::OpDef::ArgDef>;
using Names = google::protobuf::Map<std::string, std::string>;

NodeDef WithoutInputs(const NodeDef& planned) {
  NodeDef def = planned;
  def.clear_input();
  return def;
}

bool HasAny(const GraphDef& nodes, const NamedGraph& graph) {
  for (const NodeDef& node : nodes.node()) {
    if (graph.Find(node.name()) != nullptr) return true;
  }
  return false;
}

absl::Status RequireSame(const GraphDef& planned, bool reads, const NamedGraph& graph) {
  for (const NodeDef& wanted : planned.node()) {
    const Node* node = graph.Find(wanted.name());
    if (node == nullptr) {
      return RefusedPlan(
          absl::StrCat("node '", wanted.name(), "' is not in the session's graph"));
    }
    const std::string difference = Difference(wanted, DefinitionOf(*node), reads);
    if (difference.empty()) continue;
    return RefusedPlan(
        absl::StrCat("in the session's graph node '", wanted.name(), "' ", difference));
  }
  return absl::OkStatus();
}

// What models leave out of nodes of functions, where it is what ops do anyway.
NodeDef WithDefaults(const NodeDef& def) {
  NodeDef full = def;
  const tensorflow::OpDef* op = nullptr;
  if (tensorflow::OpRegistry::Global()->LookUpOpDef(def.op(), &op).ok()) {
    tensorflow::AddDefaultsToNodeDef(*op, &full);
  }
  return full;
}

bool SameArguments(const Arguments& one, const Arguments& other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](const auto& a, const auto& b) {
                      return a.name() == b.name() && a.type() == b.type();
                    });
}

bool SameNames(const Names& one, const Names& other) {
  return std::map<std::string, std::string>(one.begin(), one.end()) ==
         std::map<std::string, std::string>(other.begin(), other.end());
}

std::string DifferenceOf(const FunctionDef& planned, const FunctionDef& found) {
  if (planned.node_def_size() != found.node_def_size()) {
    return absl::StrCat("has ", found.node_def_size(), " nodes; the plan was made for one of ",
                        planned.node_def_size());
  }
  for (int i = 0; i < planned.node_def_size(); ++i) {
    const NodeDef& wanted = planned.node_def(i);
    if (wanted.name() != found.node_def(i).name()) {
      return absl::StrCat("has no node '", wanted.name(), "' where the plan knows one");
    }
    const std::string difference =
        Difference(WithDefaults(wanted), WithDefaults(found.node_def(i)), /*reads=*/true);
    if (!difference.empty()) return absl::StrCat("has node '", wanted.name(), "', which ", difference);
  }
  const bool same_ends =
      SameArguments(planned.signature().input_arg(), found.signature().input_arg()) &&
      SameArguments(planned.signature().output_arg(), found.signature().output_arg()) &&
      SameNames(planned.ret(), found.ret()) &&
      SameNames(planned.control_ret(), found.control_ret());
  return same_ends ? "" : "has other arguments or results";
}

// Those whose nodes the plan has in the place of calls.
absl::Status RequireSameFunctions(const tensorflow::FunctionDefLibrary& planned,
                                  const NamedGraph& graph) {
  for (const FunctionDef& wanted : planned.function()) {
    const std::string& name = wanted.signature().name();
    const FunctionDef* found = graph.FindFunction(name);
    const std::string difference =
        found == nullptr ? "is not there" : DifferenceOf(wanted, *found);
    if (difference.empty()) continue;
    return RefusedPlan(absl::StrCat("in the session's graph function '", name, "' ", difference));
  }
  return absl::OkStatus();
}

// A node that is replaced and not of the region could be any node of that name.
absl::Status RequireInRegion(const PlannedFusion& fusion) {
  absl::flat_hash_set<std::string> region;
  for (const NodeDef& node : fusion.region.node()) region.insert(node.name());
  for (const NodeDef& node : fusion.replaced.node()) {
    if (region.contains(node.name())) continue;
    return RefusedPlan(
        absl::StrCat("replaced node '", node.name(), "' is not of the plan's region"));
  }
  return absl::OkStatus();
}

bool IsVariable(const Node& node) {
  static const auto* const ops = new absl::flat_hash_set<std::string>{
      "VarHandleOp", "Variable", "VariableV2", "AutoReloadVariable", "TemporaryVariable"};
  return ops->contains(node.type_string());
}

// Ops that take a variable, or its handle, and leave it as it is.
bool OnlyReads(const Node& node) {
  static const auto* const ops = new absl::flat_hash_set<std::string>{
      "ReadVariableOp",     "ResourceGather", "ResourceGatherNd",      "VariableShape",
      "VarIsInitializedOp", "Identity",       "IsVariableInitialized", "Shape"};
  return ops->contains(node.type_string()) || absl::StrContains(node.type_string(), "LookUp");
}

bool MayChange(const Node& node, const tensorflow::Edge& edge) {
  if (OnlyReads(node)) return false;
  const tensorflow::DataType type = node.input_type(edge.dst_input());
  return tensorflow::IsRefType(type) || type == tensorflow::DT_RESOURCE;
}

bool ComesBehind(const Node& start, const absl::flat_hash_set<std::string>& region) {
  absl::flat_hash_set<const Node*> seen = {&start};
  std::vector<const Node*> open = {&start};
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const Node* before : node->in_nodes()) {
      if (region.contains(before->name())) return true;
      if (before->IsOp() && seen.insert(before).second) open.push_back(before);
    }
  }
  return false;
}

// The plan knows in which order its nodes and these use a variable, and of no others. One that
// depends on nothing of the region, such as a checkpoint's, has no order with it.
absl::Status RequireNoNewWriter(const PlannedFusion& fusion, const NamedGraph& graph) {
  absl::flat_hash_set<std::string> region;
  const absl::flat_hash_set<std::string> known(fusion.writers.begin(), fusion.writers.end());
  // What reads nothing, such as a variable, comes behind nothing that the plan does.
  for (const NodeDef& node : fusion.region.node()) {
    if (!node.input().empty()) region.insert(node.name());
  }
  std::vector<const Node*> variables;
  for (const GraphDef* nodes : {&fusion.region, &fusion.sources}) {
    for (const NodeDef& def : nodes->node()) {
      const Node* node = graph.Find(def.name());
      while (node != nullptr && node->IsIdentity()) {
        const tensorflow::Edge* input = nullptr;
        if (!node->input_edge(0, &input).ok()) break;
        node = input->src();
      }
      if (node != nullptr && IsVariable(*node)) variables.push_back(node);
    }
  }
  for (size_t i = 0; i < variables.size(); ++i) {
    for (const tensorflow::Edge* edge : variables[i]->out_edges()) {
      const Node* user = edge->dst();
      if (edge->IsControlEdge() || !user->IsOp()) continue;
      // An Identity of a handle or a reference is the same variable.
      if (user->IsIdentity()) variables.push_back(user);
      if (known.contains(user->name()) || region.contains(user->name())) continue;
      if (!MayChange(*user, *edge) || !ComesBehind(*user, region)) continue;
      return RefusedPlan(absl::StrCat("in the session's graph node '", user->name(),
                                      "' changes a variable behind what the plan replaces"));
    }
  }
  return absl::OkStatus();
}

absl::Status ConnectAll(const GraphDef& nodes, const std::vector<Node*>& made, NamedGraph* graph) {
  for (size_t i = 0; i < made.size(); ++i) {
    TF_RETURN_IF_ERROR(ConnectByName(nodes.node(i), made[i], graph));
    const absl::Status status = ValidateNodeDef(made[i]->def(), made[i]->op_def());
    if (!status.ok()) {
      return RefusedPlan(
          absl::StrCat("node '", made[i]->name(), "' is malformed: ", status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status Fuse(const PlannedFusion& fusion, NamedGraph* graph,
                  std::vector<NodeDef>* originals) {
  TF_RETURN_IF_ERROR(RequireInRegion(fusion));
  TF_RETURN_IF_ERROR(RequireSame(fusion.region, /*reads=*/true, *graph));
  TF_RETURN_IF_ERROR(RequireSameFunctions(fusion.region.library(), *graph));
  TF_RETURN_IF_ERROR(RequireSame(fusion.sources, /*reads=*/false, *graph));
  TF_RETURN_IF_ERROR(RequireNoNewWriter(fusion, *graph));
  for (const std::string& name : fusion.choices) {
    const Node* node = graph->Find(name);
    if (node == nullptr) {
      return RefusedPlan(absl::StrCat("node '", name, "' is not in the session's graph"));
    }
    originals->push_back(DefinitionOf(*node));
  }
  std::vector<Node*> added(fusion.added.node_size(), nullptr);
  for (size_t i = 0; i < added.size(); ++i) {
    TF_RETURN_IF_ERROR(graph->Add(WithoutInputs(fusion.added.node(i)), &added[i]));
  }
  // A node that is replaced twice would leave a pointer to one that is no more.
  absl::flat_hash_set<std::string> names;
  std::vector<Node*> replaced(fusion.replaced.node_size(), nullptr);
  for (size_t i = 0; i < replaced.size(); ++i) {
    const NodeDef& planned = fusion.replaced.node(i);
    if (!names.insert(planned.name()).second) {
      return RefusedPlan(absl::StrCat("node '", planned.name(), "' is replaced twice"));
    }
    TF_RETURN_IF_ERROR(
        graph->Replace(graph->Find(planned.name()), WithoutInputs(planned), &replaced[i]));
  }
  for (const NodeDef& planned : fusion.added.node()) {
    if (names.contains(planned.name())) {
      return RefusedPlan(absl::StrCat("node '", planned.name(), "' is both added and replaced"));
    }
  }
  for (const std::string& name : fusion.choices) {
    if (names.contains(name)) continue;
    return RefusedPlan(absl::StrCat("choice '", name, "' is not among the replaced nodes"));
  }
  TF_RETURN_IF_ERROR(ConnectAll(fusion.added, added, graph));
  return ConnectAll(fusion.replaced, replaced, graph);
}

}  // namespace

absl::Status ApplyFusion(const PlannedFusion& fusion, NamedGraph* graph,
                         std::vector<NodeDef>* originals) {
  if (!HasAny(fusion.replaced, *graph)) return absl::OkStatus();
  const absl::Status status = Fuse(fusion, graph, originals);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat("stage plan, fusion: ", status.message()));
}

}  // namespace workbench
