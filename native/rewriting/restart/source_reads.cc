#include "rewriting/restart/source_reads.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace workbench {
namespace {

using tensorflow::DeviceNameUtils;
using tensorflow::Edge;
using tensorflow::FunctionLibraryDefinition;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeDef;

constexpr char kCallOp[] = "StatefulPartitionedCall";

// As NEW_EACH_RUN in workbench/core/graph/op_types.py.
bool IsNewEachRun(const std::string& op) {
  static const auto* const ops = new absl::flat_hash_set<std::string>{
      "EagerPyFunc",
      "IteratorGetNext",
      "IteratorGetNextAsOptional",
      "IteratorGetNextSync",
      "LogUniformCandidateSampler",
      "MultiDeviceIteratorGetNextFromShard",
      "Multinomial",
      "ParameterizedTruncatedNormal",
      "PyFunc",
      "QueueDequeue",
      "QueueDequeueMany",
      "QueueDequeueManyV2",
      "QueueDequeueUpTo",
      "QueueDequeueUpToV2",
      "QueueDequeueV2",
      "RandomGamma",
      "RandomPoisson",
      "RandomPoissonV2",
      "RandomShuffle",
      "RandomStandardNormal",
      "RandomUniform",
      "RandomUniformInt",
      "ReaderRead",
      "ReaderReadUpTo",
      "ReaderReadUpToV2",
      "ReaderReadV2",
      "TruncatedNormal",
      "UniformCandidateSampler",
      "Unstage",
      "WorkbenchBufferTake",
  };
  return ops->contains(op);
}

// The same of a call of a function that has such an op in it.
bool CallsNewEachRun(const std::string& function, const FunctionLibraryDefinition& library,
                     std::set<std::string>* seen) {
  const tensorflow::FunctionDef* found = library.Find(function);
  if (found == nullptr || !seen->insert(function).second) return false;
  for (const NodeDef& node : found->node_def()) {
    if (IsNewEachRun(node.op())) return true;
    if (node.op() != kCallOp) continue;
    const auto called = node.attr().find("f");
    if (called != node.attr().end() &&
        CallsNewEachRun(called->second.func().name(), library, seen)) {
      return true;
    }
  }
  return false;
}

bool IsNewEachRun(const Node& node, const FunctionLibraryDefinition& library) {
  if (node.type_string() != kCallOp) return IsNewEachRun(node.type_string());
  std::set<std::string> seen;
  const auto called = node.def().attr().find("f");
  return called != node.def().attr().end() &&
         CallsNewEachRun(called->second.func().name(), library, &seen);
}

// Whether the node runs in some steps only, or more than once in one.
bool IsInControlFlow(const Node& start) {
  std::vector<const Node*> open = {&start};
  std::set<int> seen = {start.id()};
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (node->IsControlFlow()) return true;
    for (const Edge* edge : node->in_edges()) {
      if (edge->src()->IsOp() && seen.insert(edge->src()->id()).second) open.push_back(edge->src());
    }
  }
  return false;
}

// Whether a node, or what it reads, is asked to be on another task than the buffer.
bool IsElsewhere(const Node& node, const DeviceNameUtils::ParsedName& buffer) {
  const auto is_elsewhere = [&buffer](const Node& each) {
    DeviceNameUtils::ParsedName asked;
    return DeviceNameUtils::ParseFullName(each.requested_device(), &asked) && asked.has_job &&
           !DeviceNameUtils::IsSameAddressSpace(asked, buffer);
  };
  if (is_elsewhere(node)) return true;
  for (const Edge* edge : node.in_edges()) {
    if (edge->src()->IsOp() && is_elsewhere(*edge->src())) return true;
  }
  return false;
}

}  // namespace

absl::Status WatchSources(const GraphStages& stages, bool several_tasks, Graph* graph,
                          NamedGraph* named) {
  for (const auto& [buffer, stage] : stages) {
    const Node& put = *stage.puts.front();
    DeviceNameUtils::ParsedName device;
    if (!DeviceNameUtils::ParseFullName(put.requested_device(), &device)) continue;
    NodeDef def;
    def.set_op("WorkbenchSourceRead");
    for (const char* attr : {"stage", "container", "shared_name"}) {
      tensorflow::AddNodeAttr(attr, tensorflow::GetNodeAttrString(put.attrs(), attr), &def);
    }
    DeviceNameUtils::ParsedName on_host = device;
    on_host.has_type = on_host.has_id = true;
    on_host.type = tensorflow::DEVICE_CPU;
    on_host.id = 0;
    def.set_device(DeviceNameUtils::ParsedNameToString(on_host));
    for (const int id : stage.before) {
      Node* source = graph->FindNodeId(id);
      if (!IsNewEachRun(*source, graph->flib_def())) continue;
      if (source->type_string() == kTakeOp && BufferOf(*source) == buffer) continue;
      if (IsInControlFlow(*source) || (several_tasks && IsElsewhere(*source, device))) continue;
      NodeDef own = def;
      own.set_name(graph->NewName(absl::StrCat(source->name(), "/read")));
      tensorflow::AddNodeAttr("source", source->name(), &own);
      Node* read = nullptr;
      TF_RETURN_IF_ERROR(named->Add(std::move(own), &read));
      graph->AddControlEdge(read, source);
    }
  }
  return absl::OkStatus();
}

}  // namespace workbench
