#include "rewriting/restart_stages.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "rewriting/graph/named_graph.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/algorithm.h"

namespace workbench {
namespace {

using tensorflow::Edge;
using tensorflow::Node;
using tensorflow::NodeDef;
// Ids of nodes.
using Ids = std::set<int>;

constexpr char kPutOp[] = "WorkbenchBufferPut";
constexpr char kTakeOp[] = "WorkbenchBufferTake";
constexpr char kRestartOp[] = "WorkbenchBufferRestart";
// On a put: what its producer evaluates and feeds. In workbench/core/session/prefetch_runner.py.
constexpr char kFedAttr[] = "_workbench_fed";

// Ops that make an input begin again, and which of their inputs is its handle.
const absl::flat_hash_map<std::string, int>& Initializers() {
  static const auto* const ops = new absl::flat_hash_map<std::string, int>{
      {"MakeIterator", 1},          {"DeserializeIterator", 0}, {"MultiDeviceIteratorInit", 1},
      {"ReaderReset", 0},           {"ReaderResetV2", 0},       {"ReaderRestoreState", 0},
      {"ReaderRestoreStateV2", 0},
  };
  return *ops;
}

struct Stage {
  std::vector<Node*> puts;
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

// The resource of a node that makes a handle: two nodes of one shared name have the same.
std::string ResourceOf(const Node& node) {
  const std::string& shared = tensorflow::GetNodeAttrString(node.attrs(), "shared_name");
  return shared.empty() ? absl::StrCat("node ", node.name())
                        : absl::StrCat(node.type_string(), " ", BufferOf(node));
}

// The resources whose handles are made by these nodes.
std::set<std::string> Resources(const tensorflow::Graph& graph, const Ids& ids) {
  std::set<std::string> resources;
  for (const int id : ids) {
    const Node* node = graph.FindNodeId(id);
    if (node->num_inputs() > 0 || node->num_outputs() == 0) continue;
    const tensorflow::DataType type = node->output_type(0);
    if (type != tensorflow::DT_RESOURCE && type != tensorflow::DT_STRING_REF) continue;
    resources.insert(ResourceOf(*node));
  }
  return resources;
}

absl::Status AddRestart(const Node& put, Node* initializer, tensorflow::Graph* graph,
                        NamedGraph* named) {
  NodeDef def;
  def.set_op(kRestartOp);
  def.set_name(graph->NewName(absl::StrCat(initializer->name(), "/restart")));
  def.set_device(put.requested_device());
  for (const char* name :
       {"capacity", "stage", "container", "shared_name", "timeout_millis", "_class"}) {
    const auto found = put.def().attr().find(name);
    if (found != put.def().attr().end()) (*def.mutable_attr())[name] = found->second;
  }
  Node* restart = nullptr;
  TF_RETURN_IF_ERROR(named->Add(std::move(def), &restart));
  graph->AddControlEdge(restart, initializer);
  return absl::OkStatus();
}

}  // namespace

absl::Status RestartStages(tensorflow::Graph* graph) {
  NamedGraph named(graph);
  Stages stages = FindStages(*graph, named);
  if (stages.empty()) return absl::OkStatus();
  FollowTakes(graph, &stages);
  std::map<std::string, std::set<std::string>> read;
  for (const auto& [buffer, stage] : stages) read[buffer] = Resources(*graph, stage.before);
  std::vector<std::pair<Node*, int>> initializers;
  for (Node* node : graph->op_nodes()) {
    const auto found = Initializers().find(node->type_string());
    if (found != Initializers().end()) initializers.emplace_back(node, found->second);
  }
  for (const auto& [initializer, input] : initializers) {
    const Node* handle = nullptr;
    TF_RETURN_IF_ERROR(initializer->input_node(input, &handle));
    Ids of_handle;
    AddBefore(handle, &of_handle);
    const std::set<std::string> initialized = Resources(*graph, of_handle);
    for (const auto& [buffer, stage] : stages) {
      if (stage.before.count(initializer->id()) > 0) continue;
      const std::set<std::string>& of_stage = read[buffer];
      for (const std::string& resource : initialized) {
        if (of_stage.count(resource) == 0) continue;
        TF_RETURN_IF_ERROR(AddRestart(*stage.puts.front(), initializer, graph, &named));
        break;
      }
    }
  }
  tensorflow::FixupSourceAndSinkEdges(graph);
  return absl::OkStatus();
}

}  // namespace workbench
