#include "rewriting/apply_stage_plan.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "rewriting/copy_nodes.h"
#include "rewriting/named_graph.h"
#include "rewriting/no_cycle.h"
#include "rewriting/stand_in_device.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/tensor_id.h"
#include "tensorflow/core/platform/errors.h"

namespace workbench {
namespace {

using tensorflow::DataType;
using tensorflow::DataTypeVector;
using tensorflow::Node;
using tensorflow::NodeDef;
using tensorflow::OutputTensor;
using Names = absl::flat_hash_set<std::string>;

// What earlier stages of the plan did.
struct History {
  Names replaced;
  absl::flat_hash_map<std::string, NodeDef> originals;           // Of carried nodes, by name.
  absl::flat_hash_map<std::string, const PlannedStage*> stages;  // The last of each source.
};

constexpr char kPutOp[] = "WorkbenchBufferPut";
constexpr char kPlanAgain[] = "; make the plan from the graph that the session runs";

absl::Status Refused(const std::string& text) {
  return absl::InvalidArgumentError(absl::StrCat(text, kPlanAgain));
}

bool HasAnyMovedNode(const StagePlan& plan, const NamedGraph& graph) {
  for (const PlannedStage& stage : plan.stages) {
    for (const std::string& name : stage.moved) {
      if (graph.Find(name) != nullptr) return true;
    }
  }
  return false;
}

// The moved nodes; `replaced` are those that an earlier stage gave another op.
absl::Status FindMoved(const PlannedStage& stage, const Names& replaced, const NamedGraph& graph,
                       std::vector<Node*>* moved) {
  Names seen;
  for (size_t i = 0; i < stage.moved.size(); ++i) {
    const std::string& name = stage.moved[i];
    if (!seen.insert(name).second) return Refused(absl::StrCat("'", name, "' is moved twice"));
    Node* node = graph.Find(name);
    if (node == nullptr) {
      return Refused(absl::StrCat("moved node '", name, "' is not in the session's graph"));
    }
    if (node->type_string() != stage.moved_ops[i] && !replaced.contains(name)) {
      return Refused(absl::StrCat("moved node '", name, "' is a ", node->type_string(),
                                  " in the session's graph; the plan was made for a ",
                                  stage.moved_ops[i]));
    }
    moved->push_back(node);
  }
  return absl::OkStatus();
}

absl::Status RequireCarriable(const Node& node) {
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

// The carried nodes: some of the moved ones, the source among them.
absl::Status FindCarried(const PlannedStage& stage, const NamedGraph& graph,
                         std::vector<Node*>* carried) {
  const Names moved(stage.moved.begin(), stage.moved.end());
  Names seen;
  for (const std::string& name : stage.carried) {
    if (!seen.insert(name).second) return Refused(absl::StrCat("'", name, "' is carried twice"));
    Node* node = graph.Find(name);
    if (node == nullptr) {
      return Refused(absl::StrCat("carried node '", name, "' is not in the session's graph"));
    }
    if (!moved.contains(name)) {
      return Refused(absl::StrCat("carried node '", name, "' is not moved"));
    }
    TF_RETURN_IF_ERROR(RequireCarriable(*node));
    carried->push_back(node);
  }
  if (seen.contains(stage.moved.front())) return absl::OkStatus();
  return Refused(absl::StrCat("source '", stage.moved.front(),
                              "' is not carried, so a step would consume a batch of its own"));
}

// Gives `node` the inputs that its definition names.
absl::Status ConnectByName(const NodeDef& def, Node* node, NamedGraph* graph) {
  NodeInputs inputs;
  for (const std::string& input : def.input()) {
    const tensorflow::TensorId id = tensorflow::ParseTensorName(input);
    Node* before = graph->Find(id.node());
    if (before == nullptr) {
      return Refused(absl::StrCat("node '", def.name(), "' reads '", input,
                                  "', which is not in the session's graph"));
    }
    if (tensorflow::IsTensorIdControl(id)) {
      inputs.control.push_back(before);
    } else {
      TF_RETURN_IF_ERROR(graph->FindTensor(input, &inputs.data.emplace_back()));
    }
  }
  return graph->Connect(node, inputs);
}

// Adds the plan's own nodes, or puts them in the place of others.
absl::Status AddNodes(const PlannedStage& stage, NamedGraph* graph, Names* replaced) {
  std::vector<Node*> added;
  for (const NodeDef& planned : stage.nodes.node()) {
    NodeDef def = planned;
    def.clear_input();
    Node*& node = added.emplace_back();
    Node* old = graph->Find(def.name());
    if (old == nullptr) {
      TF_RETURN_IF_ERROR(graph->Add(std::move(def), &node));
    } else {
      replaced->insert(def.name());
      TF_RETURN_IF_ERROR(graph->Replace(old, std::move(def), &node));
    }
  }
  for (int i = 0; i < stage.nodes.node_size(); ++i) {
    TF_RETURN_IF_ERROR(ConnectByName(stage.nodes.node(i), added[i], graph));
  }
  return absl::OkStatus();
}

absl::Status RequireRecord(const std::vector<Node*>& carried, const Node& take) {
  DataTypeVector record;
  for (const Node* node : carried) {
    record.insert(record.end(), node->output_types().begin(), node->output_types().end());
  }
  if (record == take.output_types()) return absl::OkStatus();
  return Refused(absl::StrCat("take '", take.name(), "' delivers [",
                              tensorflow::DataTypeVectorString(take.output_types()),
                              "]; the outputs of the carried nodes are [",
                              tensorflow::DataTypeVectorString(record), "]"));
}

NodeDef StandIn(const Node& node, const tensorflow::DeviceSet* devices) {
  NodeDef def;
  def.set_name(node.name());
  def.set_device(StandInDevice(node, devices));
  const auto group = node.def().attr().find(tensorflow::kColocationAttrName);
  if (group != node.def().attr().end()) {
    (*def.mutable_attr())[tensorflow::kColocationAttrName] = group->second;
  }
  if (node.num_outputs() == 1) {
    def.set_op("Identity");
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
  if (take == nullptr) {
    return Refused(absl::StrCat("take '", stage.take,
                                "' is neither in the session's graph nor among the plan's nodes"));
  }
  TF_RETURN_IF_ERROR(RequireRecord(carried, *take));
  int slot = 0;
  for (Node* node : carried) {
    if (node == take) {
      return Refused(absl::StrCat("take '", stage.take,
                                  "' is carried, so it cannot deliver the record too"));
    }
    const int outputs = node->num_outputs();
    history->originals.try_emplace(node->name(), DefinitionOf(*node));
    Node* stand_in = nullptr;
    TF_RETURN_IF_ERROR(graph->Replace(node, StandIn(*node, devices), &stand_in));
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
                        NamedGraph* graph, History* history) {
  std::vector<Node*> moved;
  TF_RETURN_IF_ERROR(FindMoved(stage, history->replaced, *graph, &moved));
  std::vector<Node*> carried;
  TF_RETURN_IF_ERROR(FindCarried(stage, *graph, &carried));
  for (const CopySet& copy : stage.copies) {
    TF_RETURN_IF_ERROR(CopyNodes(moved, copy, stage.device, graph));
  }
  TF_RETURN_IF_ERROR(AddNodes(stage, graph, &history->replaced));
  TF_RETURN_IF_ERROR(ReplaceCarried(stage, devices, carried, graph, history));
  TF_RETURN_IF_ERROR(RestoreUncarried(stage, graph, history));
  history->replaced.insert(stage.carried.begin(), stage.carried.end());
  history->stages[stage.moved.front()] = &stage;
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
  NamedGraph named(graph);
  if (!HasAnyMovedNode(plan, named)) return absl::OkStatus();
  History history;
  for (const PlannedStage& stage : plan.stages) {
    const absl::Status status = ApplyStage(stage, devices, &named, &history);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("stage plan, stage '", stage.name, "': ", status.message()));
    }
  }
  TF_RETURN_IF_ERROR(CheckNoCycle(*graph, Waits(plan, named)));
  tensorflow::FixupSourceAndSinkEdges(graph);
  return absl::OkStatus();
}

}  // namespace workbench
