#include "transfers/pack_transfers.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/shape_refiner.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace workbench {
namespace {

using tensorflow::DataType;
using tensorflow::DeviceNameUtils;
using tensorflow::Edge;
using tensorflow::FunctionLibraryDefinition;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeDef;
using tensorflow::ShapeRefiner;
using ParsedName = DeviceNameUtils::ParsedName;

// An output of a node, and its readers on one device.
struct Transfer {
  Node* source = nullptr;
  int output = 0;
  std::vector<const Edge*> edges;
};

// Sending device, receiving device, hop.
using Way = std::tuple<std::string, std::string, int>;

// Whether ops may wait until another op of the same run has run.
class Waits {
 public:
  explicit Waits(const FunctionLibraryDefinition& functions) : functions_(functions) {}

  // Whether the op does, or one of a function that it may call.
  bool Any(const NodeDef& node) {
    if (IsOne(node.op()) || InFunction(node.op())) return true;
    for (const auto& [name, value] : node.attr()) {
      if (value.has_func() && InFunction(value.func().name())) return true;
      for (const auto& each : value.list().func()) {
        if (InFunction(each.name())) return true;
      }
    }
    return false;
  }

 private:
  static bool IsOne(const std::string& op) {
    static constexpr absl::string_view kEnds[] = {
        "AccumulatorTakeGradient", "BarrierTakeMany", "MutexLock", "Stage", "Unstage",
        "UnstageNoKey", "Peek"};
    return absl::StartsWith(op, "QueueDequeue") || absl::StartsWith(op, "QueueEnqueue") ||
           std::any_of(std::begin(kEnds), std::end(kEnds),
                       [&](absl::string_view end) { return absl::EndsWith(op, end); });
  }

  bool InFunction(const std::string& name) {
    const tensorflow::FunctionDef* function = functions_.Find(name);
    if (function == nullptr) return false;
    // One that calls itself is taken for one that does.
    const auto [known, added] = known_.try_emplace(name, true);
    if (!added) return known->second;
    const auto& nodes = function->node_def();
    const bool any = std::any_of(nodes.begin(), nodes.end(),
                                 [&](const NodeDef& node) { return Any(node); });
    return known_[name] = any;
  }

  const FunctionLibraryDefinition& functions_;
  std::map<std::string, bool> known_;
};

// Reads each device name once.
class Devices {
 public:
  const ParsedName& of(const Node& node) {
    const auto [found, added] = names_.try_emplace(node.assigned_device_name());
    if (added && !DeviceNameUtils::ParseFullName(found->first, &found->second)) {
      found->second.Clear();
    }
    return found->second;
  }

  bool SameTask(const Node& one, const Node& other) {
    return one.assigned_device_name() == other.assigned_device_name() ||
           DeviceNameUtils::IsSameAddressSpace(of(one), of(other));
  }

  bool OnCpu(const Node& node) {
    const ParsedName& name = of(node);
    return name.has_job && name.has_task && name.type == tensorflow::DEVICE_CPU;
  }

 private:
  std::map<std::string, ParsedName> names_;
};

// Of each node, by its id, the hop, or kStays where what it makes is not packed.
class Hops {
 public:
  static constexpr int kStays = -1;

  // `order`: each node behind those that it reads, as far as there are no loops.
  Hops(const Graph& graph, const std::vector<Node*>& order, Waits waits, Devices* devices)
      : hops_(graph.num_node_ids(), 0) {
    std::vector<const Node*> open;
    for (const Node* node : order) {
      if (node->IsControlFlow() || waits.Any(node->def())) open.push_back(node);
    }
    while (!open.empty()) {
      const Node* node = open.back();
      open.pop_back();
      if (std::exchange(hops_[node->id()], kStays) == kStays) continue;
      for (const Edge* edge : node->out_edges()) open.push_back(edge->dst());
    }
    for (const Node* node : order) {
      int& hop = hops_[node->id()];
      if (hop == kStays || !node->IsOp()) continue;
      for (const Edge* edge : node->in_edges()) {
        const Node& source = *edge->src();
        const bool travels = source.IsOp() && !devices->SameTask(source, *node);
        hop = std::max(hop, hops_[source.id()] + (travels ? 1 : 0));
      }
    }
  }

  int of(const Node& node) const { return hops_[node.id()]; }

 private:
  std::vector<int> hops_;
};

// Static sizes of a graph's tensors.
class Sizes {
 public:
  Sizes(const Graph& graph, const std::vector<Node*>& order)
      : refiner_(graph.versions(), graph.op_registry()) {
    refiner_.set_require_shape_inference_fns(false);
    for (const Node* node : order) {
      // Behind a node without shapes those of others are unknown.
      if (node->IsOp()) refiner_.AddNode(node).IgnoreError();
    }
  }

  // Bytes of an output; nothing where they are not known.
  std::optional<int64_t> BytesOf(const Node& node, int output) const {
    tensorflow::shape_inference::InferenceContext* c = refiner_.GetContext(&node);
    if (c == nullptr || !c->FullyDefined(c->output(output))) return std::nullopt;
    const auto count = c->NumElements(c->output(output));
    return c->Value(count) * tensorflow::DataTypeSize(node.output_type(output));
  }

 private:
  ShapeRefiner refiner_;
};

bool CanBePacked(const Edge& edge, Devices* devices) {
  const Node &source = *edge.src(), &reader = *edge.dst();
  if (edge.IsControlEdge() || !source.IsOp() || !reader.IsOp()) return false;
  if (source.IsRecv() || reader.IsSend() || devices->SameTask(source, reader)) return false;
  const DataType type = source.output_type(edge.src_output());
  return devices->OnCpu(source) && devices->OnCpu(reader) && !tensorflow::IsRefType(type) &&
         tensorflow::DataTypeCanUseMemcpy(type) && tensorflow::DataTypeSize(type) > 0;
}

// What travels, by its way.
std::map<Way, std::vector<Transfer>> FindTransfers(const std::vector<Node*>& order,
                                                   const Hops& hops, Devices* devices) {
  std::map<Way, std::vector<Transfer>> found;
  for (Node* node : order) {
    const int hop = hops.of(*node);
    if (hop == Hops::kStays) continue;
    std::map<std::pair<int, std::string>, Transfer> own;
    for (const Edge* edge : node->out_edges()) {
      if (!CanBePacked(*edge, devices)) continue;
      Transfer& transfer = own[{edge->src_output(), edge->dst()->assigned_device_name()}];
      transfer.source = node;
      transfer.output = edge->src_output();
      transfer.edges.push_back(edge);
    }
    for (auto& [key, transfer] : own) {
      found[{node->assigned_device_name(), key.second, hop}].push_back(std::move(transfer));
    }
  }
  return found;
}

std::string TaskName(const std::string& device) {
  ParsedName name;
  DeviceNameUtils::ParseFullName(device, &name);
  return absl::StrCat(name.job, "_", name.task);
}

absl::Status AddNode(tensorflow::NodeDefBuilder* builder, const std::string& device, Graph* graph,
                     Node** node) {
  tensorflow::NodeDef definition;
  TF_RETURN_IF_ERROR(builder->Device(device).Finalize(&definition));
  absl::Status status;
  *node = graph->AddNode(std::move(definition), &status);
  TF_RETURN_IF_ERROR(status);
  (*node)->set_assigned_device_name(device);
  return absl::OkStatus();
}

absl::Status Pack(const Way& way, const std::vector<Transfer>& transfers, Graph* graph) {
  const auto& [from, to, hop] = way;
  std::vector<DataType> types;
  std::vector<tensorflow::NodeDefBuilder::NodeOut> inputs;
  for (const Transfer& each : transfers) {
    types.push_back(each.source->output_type(each.output));
    inputs.emplace_back(each.source->name(), each.output, types.back());
  }
  // Reports read it: native/transfers and core/cluster/traffic.py agree on it.
  const std::string name = graph->NewName(
      absl::StrCat("packed/", transfers.size(), "_tensors_to_", TaskName(to), "_hop_", hop + 1));
  Node *pack = nullptr, *unpack = nullptr;
  TF_RETURN_IF_ERROR(AddNode(
      &tensorflow::NodeDefBuilder(name, "WorkbenchPackTensors").Input(inputs), from, graph, &pack));
  TF_RETURN_IF_ERROR(AddNode(&tensorflow::NodeDefBuilder(absl::StrCat(name, "/unpacked"),
                                                         "WorkbenchUnpackTensors")
                                  .Input(name, 0, tensorflow::DT_UINT8)
                                  .Attr("T", types),
                             to, graph, &unpack));
  graph->AddEdge(pack, 0, unpack, 0);
  for (size_t i = 0; i < transfers.size(); ++i) {
    graph->AddEdge(transfers[i].source, transfers[i].output, pack, static_cast<int>(i));
    for (const Edge* edge : transfers[i].edges) {
      // Updating an edge makes another one of it.
      Node* reader = edge->dst();
      const int input = edge->dst_input();
      TF_RETURN_IF_ERROR(graph->UpdateEdge(unpack, static_cast<int>(i), reader, input));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PackTransfers(int64_t largest_bytes, const FunctionLibraryDefinition& functions,
                           Graph* graph) {
  std::vector<Node*> order;
  // By name, so that a graph is packed the same way in each session.
  tensorflow::GetReversePostOrder(*graph, &order, tensorflow::NodeComparatorName());
  Devices devices;
  std::map<Way, std::vector<Transfer>> ways =
      FindTransfers(order, Hops(*graph, order, Waits(functions), &devices), &devices);
  if (ways.empty()) return absl::OkStatus();
  const Sizes sizes(*graph, order);
  for (auto& [way, transfers] : ways) {
    transfers.erase(std::remove_if(transfers.begin(), transfers.end(),
                                   [&](const Transfer& each) {
                                     const auto bytes = sizes.BytesOf(*each.source, each.output);
                                     return bytes.has_value() && *bytes > largest_bytes;
                                   }),
                    transfers.end());
    if (transfers.size() > 1) TF_RETURN_IF_ERROR(Pack(way, transfers, graph));
  }
  return absl::OkStatus();
}

}  // namespace workbench
