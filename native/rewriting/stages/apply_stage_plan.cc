#include "rewriting/stages/apply_stage_plan.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "rewriting/choice/add_choices.h"
#include "rewriting/choice/fed_apart.h"
#include "rewriting/fusion/apply_fusion.h"
#include "rewriting/graph/copy_nodes.h"
#include "rewriting/graph/cycle_check.h"
#include "rewriting/graph/identity_device.h"
#include "rewriting/graph/named_graph.h"
#include "rewriting/plan/stage_plan_rules.h"
#include "rewriting/stages/stage_nodes.h"
#include "rewriting/stages/trail_updates.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/platform/errors.h"

namespace workbench {
namespace {

using tensorflow::DataType;
using tensorflow::Node;
using tensorflow::NodeDef;
using Names = absl::flat_hash_set<std::string>;

// What earlier stages of the plan did.
struct History {
  Names added;     // Copies, and the plan's own nodes.
  Names replaced;  // Carried nodes, each by an Identity of what a take delivers.
  absl::flat_hash_map<std::string, NodeDef> originals;           // Of carried nodes, by name.
  absl::flat_hash_map<std::string, const PlannedStage*> stages;  // The last of each source.
};

bool HasAnyMovedNode(const StagePlan& plan, const NamedGraph& graph) {
  for (const PlannedStage& stage : plan.stages) {
    for (const std::string& name : stage.moved) {
      if (graph.Find(name) != nullptr) return true;
    }
  }
  return false;
}

// A later stage takes an earlier one's place by its source, which another node must not pass for.
absl::Status RequireSourceFirst(const std::vector<Node*>& moved) {
  const absl::flat_hash_set<const Node*> others(moved.begin() + 1, moved.end());
  const Node* source = moved.front();
  for (const Node* before : source->in_nodes()) {
    if (!others.contains(before)) continue;
    return RefusedPlan(absl::StrCat("moved node '", source->name(), "' reads '", before->name(),
                                    "', which is moved too; expected the source first"));
  }
  return absl::OkStatus();
}

// The moved nodes, which are the user's; a stage before may have given one another op.
absl::Status FindMoved(const PlannedStage& stage, const History& history, const NamedGraph& graph,
                       std::vector<Node*>* moved) {
  for (size_t i = 0; i < stage.moved.size(); ++i) {
    const std::string& name = stage.moved[i];
    Node* node = graph.Find(name);
    if (node == nullptr) {
      return RefusedPlan(absl::StrCat("moved node '", name, "' is not in the session's graph"));
    }
    if (history.added.contains(name)) {
      return RefusedPlan(absl::StrCat("moved node '", name, "' was added by an earlier stage"));
    }
    if (node->type_string() != stage.moved_ops[i] && !history.replaced.contains(name)) {
      return RefusedPlan(absl::StrCat("moved node '", name, "' is a ", node->type_string(),
                                      " in the session's graph; the plan was made for a ",
                                      stage.moved_ops[i]));
    }
    moved->push_back(node);
  }
  return RequireSourceFirst(*moved);
}

absl::Status RequireCarriable(const Node& node) {
  if (node.num_outputs() == 0) {
    return RefusedPlan(absl::StrCat("carried node '", node.name(), "' (", node.type_string(),
                                    ") has no output that a record could hold"));
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    const DataType type = node.output_type(i);
    if (!tensorflow::IsRefType(type) && type != tensorflow::DT_RESOURCE &&
        type != tensorflow::DT_VARIANT) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "carried node '", node.name(), "' (", node.type_string(), ") has output ", i, " of type ",
        tensorflow::DataTypeString(type), "; a record holds values only, so carry what is made "
        "from it"));
  }
  return absl::OkStatus();
}

absl::Status FindCarried(const PlannedStage& stage, const NamedGraph& graph,
                         std::vector<Node*>* carried) {
  for (const std::string& name : stage.carried) {
    Node* node = graph.Find(name);
    TF_RETURN_IF_ERROR(RequireCarriable(*node));
    carried->push_back(node);
  }
  return absl::OkStatus();
}

// `slot` is the place of the node's first output in the record.
NodeDef StandIn(const Node& node, int slot, const tensorflow::DeviceSet* devices) {
  NodeDef def;
  def.set_name(node.name());
  def.set_device(IdentityDevice(node, devices));
  const auto group = node.def().attr().find(tensorflow::kColocationAttrName);
  if (group != node.def().attr().end()) {
    (*def.mutable_attr())[tensorflow::kColocationAttrName] = group->second;
  }
  if (node.num_outputs() == 1) {
    // See WorkbenchHandOn: some rules of TensorFlow's optimizer take any output of a take for its first.
    def.set_op(slot == 0 ? "Identity" : "WorkbenchHandOn");
    tensorflow::AddNodeAttr("T", node.output_type(0), &def);
  } else {
    def.set_op("IdentityN");
    tensorflow::AddNodeAttr("T", node.output_types(), &def);
  }
  return def;
}

// Under its own name, each carried node becomes an Identity of its part of the record.
absl::Status ReplaceCarried(const PlannedStage& stage, const tensorflow::DeviceSet* devices,
                            const std::vector<Node*>& carried, NamedGraph* graph,
                            History* history) {
  Node* take = graph->Find(stage.take);
  int slot = 0;
  for (Node* node : carried) {
    const int outputs = node->num_outputs();
    history->originals.try_emplace(node->name(), DefinitionOf(*node));
    Node* stand_in = nullptr;
    TF_RETURN_IF_ERROR(graph->Replace(node, StandIn(*node, slot, devices), &stand_in));
    NodeInputs inputs;
    for (int i = 0; i < outputs; ++i) inputs.data.emplace_back(take, slot++);
    TF_RETURN_IF_ERROR(graph->Connect(stand_in, inputs));
  }
  return absl::OkStatus();
}

// A stage that carries the source of an earlier one takes that one's place. What only the earlier
// one carried becomes what the user wrote, computed from what is carried now; else it would go on
// reading the earlier record, and fetching it would take an item away from the new stage.
absl::Status RestoreUncarried(const PlannedStage& stage, NamedGraph* graph, History* history) {
  const Names carried(stage.carried.begin(), stage.carried.end());
  for (const std::string& source : stage.carried) {
    const auto earlier = history->stages.find(source);
    if (earlier == history->stages.end()) continue;
    for (const std::string& name : earlier->second->carried) {
      if (carried.contains(name)) continue;
      const NodeDef& original = history->originals[name];
      NodeDef def = original;
      def.clear_input();
      Node* node = nullptr;
      TF_RETURN_IF_ERROR(graph->Replace(graph->Find(name), std::move(def), &node));
      TF_RETURN_IF_ERROR(ConnectByName(original, node, graph));
      history->replaced.erase(name);
    }
    history->stages.erase(earlier);
  }
  return absl::OkStatus();
}

absl::Status ApplyStage(const PlannedStage& stage, const tensorflow::DeviceSet* devices,
                        tensorflow::Graph* edges, NamedGraph* graph, History* history) {
  std::vector<Node*> moved;
  TF_RETURN_IF_ERROR(FindMoved(stage, *history, *graph, &moved));
  std::vector<Node*> carried;
  TF_RETURN_IF_ERROR(FindCarried(stage, *graph, &carried));
  std::vector<std::vector<std::string>> records;
  for (const CopySet& copy : stage.copies) {
    TF_RETURN_IF_ERROR(CopyNodes(moved, carried, copy, stage.device, graph, &history->added,
                                 &records.emplace_back()));
  }
  TF_RETURN_IF_ERROR(AddOwnNodes(stage, graph, &history->added));
  TF_RETURN_IF_ERROR(CheckRecord(stage, carried, records, *graph));
  TF_RETURN_IF_ERROR(ReplaceCarried(stage, devices, carried, graph, history));
  TF_RETURN_IF_ERROR(RestoreUncarried(stage, graph, history));
  history->replaced.insert(stage.carried.begin(), stage.carried.end());
  history->stages[stage.moved.front()] = &stage;
  if (!stage.trail.has_value()) return absl::OkStatus();
  return TrailUpdates(stage, edges, graph, &history->added);
}

// What the nodes were that a take delivers now, but for the sources: these bring a batch, which no
// run does by itself. Where updates trail, their copies read what the stage delivers.
void AddOriginals(const StagePlan& plan, const History& history,
                  std::vector<NodeDef>* originals) {
  Names known;
  for (const NodeDef& original : *originals) known.insert(original.name());
  Names sources;
  for (const PlannedStage& stage : plan.stages) {
    if (stage.trail.has_value()) return;
    sources.insert(stage.moved.front());
  }
  for (const PlannedStage& stage : plan.stages) {
    for (const std::string& name : stage.carried) {
      if (!history.replaced.contains(name) || sources.contains(name)) continue;
      if (known.insert(name).second) originals->push_back(history.originals.at(name));
    }
  }
}

absl::Status ApplyStages(const StagePlan& plan, const tensorflow::DeviceSet* devices,
                         tensorflow::Graph* edges, NamedGraph* graph,
                         std::vector<NodeDef>* originals) {
  History history;
  for (const PlannedStage& stage : plan.stages) {
    const absl::Status status = ApplyStage(stage, devices, edges, graph, &history);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("stage plan, stage '", stage.name, "': ", status.message()));
    }
  }
  AddOriginals(plan, history, originals);
  return absl::OkStatus();
}

// By name, because a later stage may have replaced a node of an earlier one.
std::vector<StageWait> Waits(const StagePlan& plan, const NamedGraph& graph) {
  std::vector<StageWait> waits;
  for (const PlannedStage& stage : plan.stages) {
    StageWait& wait = waits.emplace_back();
    wait.stage = stage.name;
    wait.take = graph.Find(stage.take);
    for (const NodeDef& node : stage.nodes.node()) {
      if (node.op() == kPutOp) wait.puts.push_back(graph.Find(node.name()));
    }
  }
  return waits;
}

}  // namespace

absl::Status ApplyStagePlan(const StagePlan& plan, const tensorflow::DeviceSet* devices,
                            tensorflow::Graph* graph) {
  TF_RETURN_IF_ERROR(CheckStagePlan(plan));
  if (plan.stages.empty() && plan.fusion.replaced.node().empty()) return absl::OkStatus();
  NamedGraph named(graph);
  std::vector<NodeDef> originals;
  TF_RETURN_IF_ERROR(ApplyFusion(plan.fusion, &named, &originals));
  const bool staged = HasAnyMovedNode(plan, named);
  if (staged) TF_RETURN_IF_ERROR(ApplyStages(plan, devices, graph, &named, &originals));
  TF_RETURN_IF_ERROR(AddChoices(originals, &named));
  TF_RETURN_IF_ERROR(
      CheckNoCycle(*graph, staged ? Waits(plan, named) : std::vector<StageWait>()));
  tensorflow::FixupSourceAndSinkEdges(graph);
  // No partial run is fed what stages compute ahead, and what finds a stage's input needs the edges.
  return plan.stages.empty() ? HideInputs(plan.fusion, graph) : absl::OkStatus();
}

}  // namespace workbench
