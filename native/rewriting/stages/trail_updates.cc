#include "rewriting/stages/trail_updates.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "rewriting/graph/copy_nodes.h"
#include "rewriting/plan/stage_plan_rules.h"
#include "rewriting/stages/stage_nodes.h"
#include "tensorflow/core/graph/graph.h"

namespace workbench {
namespace {

using tensorflow::AttrValue;
using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeDef;
using tensorflow::OutputTensor;
using Names = absl::flat_hash_set<std::string>;

absl::Status Found(const std::string& what, const std::string& name, NamedGraph* named,
                   Node** node) {
  *node = named->Find(name);
  if (*node != nullptr) return absl::OkStatus();
  return RefusedPlan(absl::StrCat(what, " '", name, "' is not in the session's graph"));
}

absl::Status CopyUpdates(const PlannedTrail& trail, Graph* graph, NamedGraph* named,
                         Names* added) {
  std::vector<Node*> moved;
  for (size_t i = 0; i < trail.moved.size(); ++i) {
    TF_RETURN_IF_ERROR(Found("trailing node", trail.moved[i], named, &moved.emplace_back()));
    if (moved.back()->type_string() == trail.moved_ops[i]) continue;
    return RefusedPlan(absl::StrCat("trailing node '", trail.moved[i], "' is a ",
                                    moved.back()->type_string(),
                                    " in the session's graph; the plan was made for a ",
                                    trail.moved_ops[i]));
  }
  // What stands in for a tensor must be an output of what is moved, but has no copy.
  absl::flat_hash_set<const Node*> there(moved.begin(), moved.end());
  const size_t copied = moved.size();
  for (const std::string& name : trail.copy.from) {
    OutputTensor tensor;
    TF_RETURN_IF_ERROR(named->FindTensor(name, &tensor));
    if (there.insert(tensor.node).second) {
      moved.push_back(tensor.node);
    } else if (std::find(moved.begin(), moved.begin() + copied, tensor.node) !=
               moved.begin() + copied) {
      return RefusedPlan(absl::StrCat("trailing node '", tensor.node->name(), "' is returned too"));
    }
  }
  std::vector<std::string> record;
  TF_RETURN_IF_ERROR(CopyNodes(moved, {}, trail.copy, "", named, added, &record));
  // The return waits for these in the copies' place.
  const Names waits(trail.waits.begin(), trail.waits.end());
  for (const std::string& name : trail.moved) {
    Node* copy = named->Find(absl::StrCat(trail.copy.prefix, "/", name));
    std::vector<const Edge*> gone;
    for (const Edge* edge : copy->in_edges()) {
      if (edge->IsControlEdge() && waits.contains(edge->src()->name())) gone.push_back(edge);
    }
    for (const Edge* edge : gone) graph->RemoveEdge(edge);
  }
  return absl::OkStatus();
}

absl::Status ReplaceUpdates(const PlannedTrail& trail, NamedGraph* named) {
  Node* returns = named->Find(trail.returns);
  for (const std::string& name : trail.updates) {
    Node* update = named->Find(name);
    for (const Edge* edge : update->out_edges()) {
      if (edge->IsControlEdge() || !edge->dst()->IsOp()) continue;
      return RefusedPlan(absl::StrCat("update '", name, "' is read by '", edge->dst()->name(), "'"));
    }
    NodeDef def;
    def.set_name(name);
    def.set_op("NoOp");
    def.set_device(returns->requested_device());
    Node* node = nullptr;
    TF_RETURN_IF_ERROR(named->Replace(update, std::move(def), &node));
    TF_RETURN_IF_ERROR(named->Connect(node, {{}, {returns}}));
  }
  return absl::OkStatus();
}

// The takes of other stages, and the copies of the source, on the way to the puts.
void BeginFirst(const PlannedStage& stage, Graph* graph, NamedGraph* named) {
  Node* begin = named->Find(stage.trail->begin);
  Names sources;
  for (const CopySet& copy : stage.copies) {
    sources.insert(absl::StrCat(copy.prefix, "/", stage.moved.front()));
  }
  std::vector<Node*> open;
  for (const NodeDef& own : stage.nodes.node()) {
    if (own.op() == kPutOp) open.push_back(named->Find(own.name()));
  }
  absl::flat_hash_set<const Node*> seen(open.begin(), open.end());
  while (!open.empty()) {
    Node* node = open.back();
    open.pop_back();
    if (node->type_string() == kTakeOp || sources.contains(node->name())) {
      graph->AddControlEdge(begin, node);
    }
    for (const Edge* edge : node->in_edges()) {
      if (edge->src()->IsOp() && seen.insert(edge->src()).second) open.push_back(edge->src());
    }
  }
}

// Gives on what a variable holds, whole.
bool GivesOn(const Node& node) {
  return node.type_string() == "Identity" || node.type_string() == "ReadVariableOp" ||
         node.type_string() == "WorkbenchHandOn";
}

// Of one variable, everything but the stage's copies waits for the updates: these have a node of
// their own for the same variable, and for what gives it on.
class Settler {
 public:
  Settler(const PlannedTrail& trail, const Names& added, Graph* graph, NamedGraph* named)
      : trail_(trail), added_(added), graph_(*graph), named_(*named),
        settle_(named->Find(trail.settle)) {}

  absl::Status Run(Node* variable) {
    std::vector<Node*> open = {variable};
    absl::flat_hash_set<const Node*> seen = {variable};
    while (!open.empty()) {
      Node* node = open.back();
      open.pop_back();
      const std::vector<const Edge*> edges(node->out_edges().begin(), node->out_edges().end());
      for (const Edge* edge : edges) {
        Node* reader = edge->dst();
        if (edge->IsControlEdge() || !reader->IsOp()) continue;
        if (added_.contains(reader->name())) {
          TF_RETURN_IF_ERROR(ReadOwn(node, edge));
        } else if (GivesOn(*reader) && seen.insert(reader).second) {
          open.push_back(reader);
        }
      }
    }
    graph_.AddControlEdge(settle_, variable);
    return absl::OkStatus();
  }

 private:
  // Lets a copy read by a node of its own what it read by `node`.
  absl::Status ReadOwn(Node* node, const Edge* edge) {
    Node* reader = edge->dst();
    const int output = edge->src_output();
    const int input = edge->dst_input();
    Node* own = nullptr;
    TF_RETURN_IF_ERROR(OwnOf(node, &own));
    return graph_.UpdateEdge(own, output, reader, input);
  }

  absl::Status OwnOf(Node* node, Node** own) {
    const auto found = own_.find(node);
    if (found != own_.end()) {
      *own = found->second;
      return absl::OkStatus();
    }
    NodeDef def = node->def();
    def.set_name(graph_.NewName(absl::StrCat(trail_.copy.prefix, "/", node->name())));
    def.clear_input();
    if (def.mutable_attr()->count("shared_name") > 0) {
      AttrValue& shared = (*def.mutable_attr())["shared_name"];
      // Without one the variable has the name of its node.
      if (shared.s().empty()) shared.set_s(node->name());
    }
    TF_RETURN_IF_ERROR(named_.Add(std::move(def), own));
    NodeInputs inputs = InputsOf(*node);
    for (OutputTensor& tensor : inputs.data) {
      TF_RETURN_IF_ERROR(OwnOf(tensor.node, &tensor.node));
    }
    inputs.control.clear();
    TF_RETURN_IF_ERROR(named_.Connect(*own, inputs));
    own_[node] = *own;
    return absl::OkStatus();
  }

  const PlannedTrail& trail_;
  const Names& added_;
  Graph& graph_;
  NamedGraph& named_;
  Node* const settle_;
  // What copies read in the place of a variable, or of what gives it on.
  absl::flat_hash_map<Node*, Node*> own_;
};

}  // namespace

absl::Status TrailUpdates(const PlannedStage& stage, Graph* graph, NamedGraph* named,
                          Names* added) {
  const PlannedTrail& trail = *stage.trail;
  TF_RETURN_IF_ERROR(CopyUpdates(trail, graph, named, added));
  TF_RETURN_IF_ERROR(ReplaceUpdates(trail, named));
  BeginFirst(stage, graph, named);
  Settler settler(trail, *added, graph, named);
  for (const std::string& name : trail.variables) {
    Node* variable = nullptr;
    TF_RETURN_IF_ERROR(Found("variable", name, named, &variable));
    TF_RETURN_IF_ERROR(settler.Run(variable));
  }
  return absl::OkStatus();
}

}  // namespace workbench
