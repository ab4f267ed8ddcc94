#include "rewriting/restart/restart_stages.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rewriting/graph/named_graph.h"
#include "rewriting/restart/initializers.h"
#include "rewriting/restart/restart_in_functions.h"
#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace workbench {
namespace {

using tensorflow::Edge;
using tensorflow::Node;
using tensorflow::NodeDef;
using tensorflow::OutputTensor;
// Ids of nodes.
using Ids = std::set<int>;

constexpr char kPutOp[] = "WorkbenchBufferPut";
constexpr char kTakeOp[] = "WorkbenchBufferTake";
constexpr char kResumeOp[] = "WorkbenchBufferResume";
constexpr char kWatchOp[] = "WorkbenchBufferWatch";
constexpr char kNameOp[] = "WorkbenchInputName";
// On a put: what its producer evaluates and feeds. In workbench/core/session/prefetch_runner.py.
constexpr char kFedAttr[] = "_workbench_fed";

struct Stage {
  std::vector<Node*> puts;
  std::vector<Node*> resumes;
  Ids before;  // Whatever a put needs.
  std::set<std::string> takes_from;  // Other buffers.
};
using Stages = std::map<std::string, Stage>;  // By buffer.

std::string BufferOf(const Node& node) {
  return absl::StrCat(tensorflow::GetNodeAttrString(node.attrs(), "container"), "/",
                      tensorflow::GetNodeAttrString(node.attrs(), "shared_name"));
}

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

Stages FindStages(const tensorflow::Graph& graph, const NamedGraph& named) {
  Stages stages;
  for (Node* node : graph.op_nodes()) {
    if (node->type_string() == kPutOp) stages[BufferOf(*node)].puts.push_back(node);
  }
  for (Node* node : graph.op_nodes()) {
    if (node->type_string() != kResumeOp) continue;
    const auto found = stages.find(BufferOf(*node));
    if (found != stages.end()) found->second.resumes.push_back(node);
  }
  for (auto& [buffer, stage] : stages) {
    for (const Node* put : stage.puts) {
      AddBefore(put, &stage.before);
      std::vector<std::string> fed;
      if (!tensorflow::TryGetNodeAttr(put->attrs(), kFedAttr, &fed)) continue;
      for (const std::string& name : fed) {
        if (const Node* node = named.Find(name)) AddBefore(node, &stage.before);
      }
    }
  }
  return stages;
}

// Marks the takes that stages make, and adds to each stage what the stages it takes from need.
void FollowTakes(tensorflow::Graph* graph, Stages* stages) {
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
      }
    }
  }
}

// Adds a node without inputs that goes where `beside` goes; `def` has its op and attributes.
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

// Before the resume comes the watch: from then on whatever initializes the inputs finds the stage.
// A session that places pruned graphs has the puts alone in one, without the resume.
absl::Status AddWatch(const Stage& stage, tensorflow::Graph* graph, NamedGraph* named) {
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
  for (const char* attr :
       {"capacity", "stage", "container", "shared_name", "timeout_millis", "_class"}) {
    const auto& attrs = stage.puts.front()->def().attr();
    const auto found = attrs.find(attr);
    if (found != attrs.end()) (*def.mutable_attr())[attr] = found->second;
  }
  for (Node* after : stage.resumes.empty() ? stage.puts : stage.resumes) {
    Node* watch = nullptr;
    TF_RETURN_IF_ERROR(AddBeside(*after, def, graph, named, &watch));
    TF_RETURN_IF_ERROR(named->Connect(watch, inputs));
    graph->AddControlEdge(watch, after);
  }
  return absl::OkStatus();
}

// The restart comes when the initializer could: where a branch is not taken, neither does.
absl::Status AddRestart(Node* initializer, int handle, tensorflow::Graph* graph,
                        NamedGraph* named) {
  NodeInputs inputs = InputsOf(*initializer);
  inputs.data = {inputs.data[handle]};
  Node* restart = nullptr;
  TF_RETURN_IF_ERROR(AddBeside(
      *initializer, OpOnHandle(kInputRestartOp, "restart", *initializer, inputs.data[0]), graph,
      named, &restart));
  TF_RETURN_IF_ERROR(named->Connect(restart, inputs));
  graph->AddControlEdge(restart, initializer);
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

}  // namespace

absl::Status RestartStages(const tensorflow::GraphOptimizationPassOptions& options) {
  tensorflow::Graph* graph = options.graph->get();
  NamedGraph named(graph);
  Stages stages = FindStages(*graph, named);
  if (stages.empty() && HasSeveralTasks(options.device_set)) return absl::OkStatus();
  FollowTakes(graph, &stages);
  Ids staged;
  for (const auto& [buffer, stage] : stages) {
    staged.insert(stage.before.begin(), stage.before.end());
  }
  std::vector<std::pair<Node*, int>> initializers;
  for (Node* node : graph->op_nodes()) {
    const int handle = HandleOfInitializer(node->type_string());
    if (handle >= 0 && staged.count(node->id()) == 0) initializers.emplace_back(node, handle);
  }
  for (const auto& [initializer, handle] : initializers) {
    TF_RETURN_IF_ERROR(AddRestart(initializer, handle, graph, &named));
  }
  for (const auto& [buffer, stage] : stages) TF_RETURN_IF_ERROR(AddWatch(stage, graph, &named));
  TF_RETURN_IF_ERROR(RestartInFunctions(staged, graph, &named, options.flib_def));
  tensorflow::FixupSourceAndSinkEdges(graph);
  return absl::OkStatus();
}

}  // namespace workbench
