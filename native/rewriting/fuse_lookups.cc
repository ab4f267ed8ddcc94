#include "rewriting/fuse_lookups.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "rewriting/stages/stage_nodes.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/platform/errors.h"

namespace workbench {
namespace {

using tensorflow::Node;
using tensorflow::NodeDef;

NodeDef WithoutInputs(const NodeDef& planned) {
  NodeDef def = planned;
  def.clear_input();
  return def;
}

bool HasAny(const tensorflow::GraphDef& nodes, const NamedGraph& graph) {
  for (const NodeDef& node : nodes.node()) {
    if (graph.Find(node.name()) != nullptr) return true;
  }
  return false;
}

absl::Status Replace(const NodeDef& planned, const std::string& op, NamedGraph* graph,
                     Node** node) {
  Node* old = graph->Find(planned.name());
  if (old == nullptr) {
    return RefusedPlan(
        absl::StrCat("replaced node '", planned.name(), "' is not in the session's graph"));
  }
  if (old->type_string() != op) {
    return RefusedPlan(absl::StrCat("replaced node '", planned.name(), "' is a ",
                                    old->type_string(),
                                    " in the session's graph; the plan was made for a ", op));
  }
  return graph->Replace(old, WithoutInputs(planned), node);
}

absl::Status ConnectAll(const tensorflow::GraphDef& nodes, const std::vector<Node*>& made,
                        NamedGraph* graph) {
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

absl::Status Fuse(const PlannedFusion& fusion, NamedGraph* graph) {
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
    TF_RETURN_IF_ERROR(Replace(planned, fusion.replaced_ops[i], graph, &replaced[i]));
  }
  for (const NodeDef& planned : fusion.added.node()) {
    if (names.contains(planned.name())) {
      return RefusedPlan(absl::StrCat("node '", planned.name(), "' is both added and replaced"));
    }
  }
  TF_RETURN_IF_ERROR(ConnectAll(fusion.added, added, graph));
  return ConnectAll(fusion.replaced, replaced, graph);
}

}  // namespace

absl::Status FuseLookups(const PlannedFusion& fusion, NamedGraph* graph) {
  if (!HasAny(fusion.replaced, *graph)) return absl::OkStatus();
  const absl::Status status = Fuse(fusion, graph);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat("stage plan, fusion: ", status.message()));
}

}  // namespace workbench
