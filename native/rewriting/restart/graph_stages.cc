#include "rewriting/restart/graph_stages.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "rewriting/restart/initializers.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace workbench {
namespace {

using tensorflow::Edge;
using tensorflow::Node;
using tensorflow::NodeDef;
using tensorflow::OutputTensor;

constexpr char kResumeOp[] = "WorkbenchBufferResume";
constexpr char kWatchOp[] = "WorkbenchBufferWatch";
constexpr char kNameOp[] = "WorkbenchInputName";
// On a put: what its producer evaluates and feeds. In workbench/core/session/prefetch_runner.py.
constexpr char kFedAttr[] = "_workbench_fed";
// And the name that the put had when it was built: an import into a scope changes the names of nodes,
// but not those in attributes.
constexpr char kBuiltAttr[] = "_workbench_put";

void AddBefore(const Node* start, Ids* before) {
  std::vector<const Node*> open = {start};
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (!before->insert(node->id()).second) continue;
    for (const Edge* edge : node->in_edges()) {
      if (edge->src()->IsOp()) open.push_back(edge->src());
    }
  }
}

// What the name in an attribute of the put is in this graph.
std::string NameNow(const Node& put, const std::string& name) {
  std::string built;
  if (!tensorflow::TryGetNodeAttr(put.attrs(), kBuiltAttr, &built)) return name;
  absl::string_view scope = put.name();
  return absl::ConsumeSuffix(&scope, built) ? absl::StrCat(scope, name) : name;
}

}  // namespace

std::string BufferOf(const Node& node) {
  return absl::StrCat(tensorflow::GetNodeAttrString(node.attrs(), "container"), "/",
                      tensorflow::GetNodeAttrString(node.attrs(), "shared_name"));
}

GraphStages FindStages(const tensorflow::Graph& graph, const NamedGraph& named) {
  GraphStages stages;
  for (Node* node : graph.op_nodes()) {
    if (node->type_string() == kPutOp) stages[BufferOf(*node)].puts.push_back(node);
  }
  for (Node* node : graph.op_nodes()) {
    if (node->type_string() != kResumeOp) continue;
    const auto found = stages.find(BufferOf(*node));
    if (found != stages.end()) found->second.resumes.push_back(node);
  }
  for (auto& [buffer, stage] : stages) {
    stage.name = tensorflow::GetNodeAttrString(stage.puts.front()->attrs(), "stage");
    for (const Node* put : stage.puts) {
      AddBefore(put, &stage.own);
      std::vector<std::string> fed;
      if (!tensorflow::TryGetNodeAttr(put->attrs(), kFedAttr, &fed)) continue;
      for (const std::string& name : fed) {
        if (const Node* node = named.Find(NameNow(*put, name))) AddBefore(node, &stage.own);
      }
    }
    stage.before = stage.own;
  }
  return stages;
}

void FollowTakes(tensorflow::Graph* graph, GraphStages* stages) {
  for (Node* node : graph->op_nodes()) {
    if (node->type_string() != kTakeOp) continue;
    for (auto& [buffer, stage] : *stages) {
      if (stage.before.count(node->id()) == 0) continue;
      node->ClearAttr("ahead");
      node->AddAttr("ahead", true);
      stage.takes_from.insert(BufferOf(*node));
    }
  }
  for (size_t round = 0; round < stages->size(); ++round) {
    for (auto& [buffer, stage] : *stages) {
      for (const std::string& other : stage.takes_from) {
        const auto found = stages->find(other);
        if (found == stages->end() || other == buffer) continue;
        stage.before.insert(found->second.before.begin(), found->second.before.end());
        const int behind = std::min(found->second.depth + 1, static_cast<int>(stages->size()));
        stage.depth = std::max(stage.depth, behind);
      }
    }
  }
}

void CopyBufferAttrs(const GraphStage& stage, const std::vector<std::string>& others, NodeDef* def) {
  std::vector<std::string> names = {"capacity", "stage", "container", "shared_name", "_class"};
  names.insert(names.end(), others.begin(), others.end());
  for (const std::string& name : names) {
    const auto& attrs = stage.puts.front()->def().attr();
    const auto found = attrs.find(name);
    if (found != attrs.end()) (*def->mutable_attr())[name] = found->second;
  }
}

absl::Status AddBeside(const Node& beside, NodeDef def, tensorflow::Graph* graph, NamedGraph* named,
                       Node** node) {
  def.set_name(graph->NewName(absl::StrCat(beside.name(), "/", def.name())));
  def.set_device(beside.requested_device());
  return named->Add(std::move(def), node);
}

NodeDef OpOnHandle(const char* op, const char* name, const Node& beside,
                   const OutputTensor& handle) {
  NodeDef def;
  def.set_op(op);
  def.set_name(name);
  (*def.mutable_attr())["T"].set_type(
      tensorflow::BaseType(handle.node->output_type(handle.index)));
  // The placer keeps a resource's readers together by itself, but not those of old references.
  (*def.mutable_attr())[tensorflow::kColocationAttrName].mutable_list()->add_s(
      absl::StrCat(tensorflow::kColocationGroupPrefix, beside.name()));
  return def;
}

absl::Status AddWatch(const GraphStage& stage, const std::vector<Node*>& nodes,
                      tensorflow::Graph* graph, NamedGraph* named) {
  NodeInputs inputs;
  for (const int id : stage.before) {
    Node* handle = graph->FindNodeId(id);
    // One that waits for other nodes is made within a branch or a loop.
    if (!MakesHandle(*handle) || !InputsOf(*handle).control.empty()) continue;
    Node* name = nullptr;
    TF_RETURN_IF_ERROR(AddBeside(*handle, OpOnHandle(kNameOp, "name", *handle, {handle, 0}), graph,
                                 named, &name));
    TF_RETURN_IF_ERROR(named->Connect(name, {{{handle, 0}}, {}}));
    inputs.data.push_back({name, 0});
  }
  NodeDef def;
  def.set_op(kWatchOp);
  def.set_name("watch");
  (*def.mutable_attr())["N"].set_i(static_cast<int64_t>(inputs.data.size()));
  CopyBufferAttrs(stage, {"timeout_millis"}, &def);
  for (Node* after : nodes) {
    Node* watch = nullptr;
    TF_RETURN_IF_ERROR(AddBeside(*after, def, graph, named, &watch));
    TF_RETURN_IF_ERROR(named->Connect(watch, inputs));
    graph->AddControlEdge(watch, after);
  }
  return absl::OkStatus();
}

bool HasSeveralTasks(const tensorflow::DeviceSet* devices) {
  if (devices == nullptr || devices->devices().empty()) return false;
  const auto& first = devices->devices().front()->parsed_name();
  for (const tensorflow::Device* device : devices->devices()) {
    if (!tensorflow::DeviceNameUtils::IsSameAddressSpace(first, device->parsed_name())) return true;
  }
  return false;
}

}  // namespace workbench
