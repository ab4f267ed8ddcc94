// The graph pass that places the staged side of every stage with a stream k above 0 on the k-th
// logical device, which has streams of its own. The graph is placed already. What moves:
//
// 1. Nodes that a put of the stage needs, and nothing else that computes does.
// 2. Of these, nodes on device 0 of a kind: of every kind but CPUs where the session has another
//    kind, else of CPUs, which stand in for accelerators so that tests see what moves.
// 3. No stateful node, and none that reads or makes a resource or a reference: state is where it
//    is.
//
// The buffer stays where the step takes from it: what travels there is copied by the put's run. The
// pass fails where a node is to move and the device is missing, or is another piece of hardware. With
// a single CPU alone there are no streams, and nothing moves. Functions are placed likewise.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "registration/guarded_pass.h"
#include "rewriting/plan/stage_plan_rules.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace workbench {
namespace {

using tensorflow::DEVICE_CPU;
using tensorflow::Device;
using tensorflow::DeviceNameUtils;
using tensorflow::DeviceSet;
using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;
using Nodes = absl::flat_hash_set<Node*>;
using ParsedName = DeviceNameUtils::ParsedName;

// After TensorFlow's own passes of placed graphs.
constexpr int kStreamPhase = 100;

// The stages of one stream.
struct Stream {
  int64_t id = 0;
  std::string stage;  // The first one, for messages.
  std::vector<Node*> puts;
};

std::vector<Stream> FindStreams(const Graph& graph) {
  std::map<int64_t, Stream> streams;
  for (Node* node : graph.op_nodes()) {
    int64_t id = 0;
    if (node->type_string() != kPutOp ||
        !tensorflow::TryGetNodeAttr(node->attrs(), "stream_id", &id) || id == 0) {
      continue;
    }
    Stream& stream = streams[id];
    stream.id = id;
    if (stream.puts.empty()) stream.stage = tensorflow::GetNodeAttrString(node->attrs(), "stage");
    stream.puts.push_back(node);
  }
  std::vector<Stream> found;
  for (auto& [id, stream] : streams) found.push_back(std::move(stream));
  return found;
}

bool OnlyPassesOn(const Node& node) {
  return node.IsControlFlow() || node.IsIdentity() || node.type_string() == "IdentityN" ||
         node.type_string() == "NoOp";
}

// Whether nothing is computed from a node's outputs but what is staged: so it is with variables of
// loops that no node reads, and with the nodes under the names of loops and branches that
// TensorFlow has lowered.
bool LeadsNowhere(const Node* start, const Nodes& staged) {
  absl::flat_hash_set<const Node*> seen = {start};
  std::vector<const Node*> open = {start};
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (!OnlyPassesOn(*node)) return false;
    for (const Edge* edge : node->out_edges()) {
      Node* reader = edge->dst();
      if (!reader->IsOp() || staged.contains(reader)) continue;
      if (seen.insert(reader).second) open.push_back(reader);
    }
  }
  return true;
}

// What the puts need, without them, and nothing else does.
Nodes StagedAlone(const std::vector<Node*>& puts) {
  const Nodes ends(puts.begin(), puts.end());
  Nodes staged;
  std::vector<Node*> open = puts;
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const Edge* edge : node->in_edges()) {
      if (!edge->src()->IsOp() || ends.contains(edge->src())) continue;
      if (staged.insert(edge->src()).second) open.push_back(edge->src());
    }
  }
  for (Node* node : staged) {
    const auto& edges = node->out_edges();
    const bool shared = std::any_of(edges.begin(), edges.end(), [&](const Edge* edge) {
      Node* reader = edge->dst();
      return reader->IsOp() && !staged.contains(reader) && !ends.contains(reader) &&
             !LeadsNowhere(reader, staged);
    });
    if (shared) open.push_back(node);
  }
  while (!open.empty()) {
    Node* node = open.back();
    open.pop_back();
    if (staged.erase(node) == 0) continue;
    for (const Edge* edge : node->in_edges()) open.push_back(edge->src());
  }
  return staged;
}

bool HoldsState(const Node& node) {
  const auto is_state = [](tensorflow::DataType type) {
    return tensorflow::IsRefType(type) || type == tensorflow::DT_RESOURCE;
  };
  return node.op_def().is_stateful() ||
         std::any_of(node.input_types().begin(), node.input_types().end(), is_state) ||
         std::any_of(node.output_types().begin(), node.output_types().end(), is_state);
}

// The devices of a node's kind and task.
std::vector<const Device*> DevicesLike(const ParsedName& name, const DeviceSet& devices) {
  std::vector<const Device*> found;
  for (const Device* device : devices.devices()) {
    const ParsedName& other = device->parsed_name();
    if (DeviceNameUtils::IsSameAddressSpace(name, other) && name.type == other.type) {
      found.push_back(device);
    }
  }
  return found;
}

absl::Status Missing(const Stream& stream, const Node& node, const ParsedName& name,
                     const std::vector<const Device*>& like, const char* what) {
  const std::string names = absl::StrJoin(like, ", ", [](std::string* out, const Device* device) {
    absl::StrAppend(out, DeviceNameUtils::LocalName(device->name()));
  });
  return absl::InvalidArgumentError(absl::StrCat(
      "stage '", stream.stage, "' has stage_subgraph_stream_id=", stream.id, ", so '", node.name(),
      "' is to run on ", name.type, ":", stream.id, ", ", what, " (there are ", names,
      "); streams are logical devices of the first device: make them with "
      "config.gpu_options.experimental.virtual_devices.add(memory_limit_mb=[...]), or for a "
      "tf.function with tf.config.set_logical_device_configuration, one for each stream, 0 "
      "included (of CPUs: config.device_count['CPU']); or set stage_subgraph_stream_id=0"));
}

// Where a node goes; null: nowhere.
absl::Status Target(const Stream& stream, const Node& node, bool cpus, const DeviceSet& devices,
                    const Device** target) {
  *target = nullptr;
  ParsedName name;
  if (!DeviceNameUtils::ParseFullName(node.assigned_device_name(), &name) || name.id != 0 ||
      (name.type == DEVICE_CPU) != cpus) {
    return absl::OkStatus();
  }
  const std::vector<const Device*> like = DevicesLike(name, devices);
  if (cpus && like.size() < 2) return absl::OkStatus();
  const auto numbered = [&](int64_t id) {
    const auto found = std::find_if(like.begin(), like.end(), [id](const Device* device) {
      return device->parsed_name().id == id;
    });
    return found == like.end() ? nullptr : *found;
  };
  const Device* first = numbered(0);
  const Device* other = numbered(stream.id);
  if (other == nullptr || first == nullptr) {
    return Missing(stream, node, name, like, "which does not exist");
  }
  if (first->attributes().physical_device_desc() != other->attributes().physical_device_desc()) {
    return Missing(stream, node, name, like, "which is no logical device of the first one");
  }
  *target = other;
  return absl::OkStatus();
}

absl::Status PlaceStagedSides(const DeviceSet& devices, Graph* graph) {
  const std::vector<Stream> streams = FindStreams(*graph);
  if (streams.empty()) return absl::OkStatus();
  const auto& all = devices.devices();
  const bool cpus = std::all_of(all.begin(), all.end(), [](const Device* device) {
    return device->device_type() == DEVICE_CPU;
  });
  for (const Stream& stream : streams) {
    const Nodes staged = StagedAlone(stream.puts);
    for (Node* node : graph->op_nodes()) {
      if (!staged.contains(node) || HoldsState(*node)) continue;
      const Device* target = nullptr;
      TF_RETURN_IF_ERROR(Target(stream, *node, cpus, devices, &target));
      if (target != nullptr) node->set_assigned_device_name(target->name());
    }
  }
  return absl::OkStatus();
}

class StageStreamPass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override {
    if (options.device_set == nullptr || options.graph == nullptr || *options.graph == nullptr) {
      return absl::OkStatus();
    }
    return PlaceStagedSides(*options.device_set, options.graph->get());
  }
};

REGISTER_OPTIMIZATION(tensorflow::OptimizationPassRegistry::POST_PLACEMENT, kStreamPhase,
                      GuardedPass<StageStreamPass>);

}  // namespace
}  // namespace workbench
