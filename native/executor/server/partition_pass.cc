// The worker's pass of executor/server/partition.h.

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "executor/policies/executor.h"
#include "executor/server/partition.h"
#include "registration/guarded_pass.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/algorithm.h"

namespace workbench {
namespace {

using tensorflow::Graph;
using tensorflow::Node;

// After all others.
constexpr int kPartitionPhase = 10000;
// A constant of more bytes is left out of what the partition shows.
constexpr size_t kLargestShown = 64;

Node* MarkedNode(const Graph& graph) {
  for (Node* node : graph.op_nodes()) {
    if (node->attrs().Find(kMarkedExecutor) != nullptr) return node;
  }
  return nullptr;
}

// The partition's nodes as a GraphDef, for RunMetadata.partition_graphs: names, ops, edges and
// attributes, without large constants.
std::string Shown(const Graph& graph) {
  tensorflow::GraphDef shown;
  graph.ToGraphDef(&shown, /*include_flib_def=*/false);
  for (auto& node : *shown.mutable_node()) {
    auto& attributes = *node.mutable_attr();
    const auto value = attributes.find("value");
    if (value != attributes.end() && value->second.ByteSizeLong() > kLargestShown) {
      attributes.erase(value);
    }
    for (const char* mark : {kMarkedExecutor, kMarkedSession, kMarkedOptimizer}) {
      attributes.erase(mark);
    }
  }
  return shown.SerializeAsString();
}

absl::Status Replace(const std::string& device, std::unique_ptr<Graph>* partition) {
  const Node* marked = MarkedNode(**partition);
  if (marked == nullptr) return absl::OkStatus();
  std::string executor, session, optimizer;
  TF_RETURN_IF_ERROR(tensorflow::GetNodeAttr(marked->attrs(), kMarkedExecutor, &executor));
  TF_RETURN_IF_ERROR(tensorflow::GetNodeAttr(marked->attrs(), kMarkedSession, &session));
  TF_RETURN_IF_ERROR(tensorflow::GetNodeAttr(marked->attrs(), kMarkedOptimizer, &optimizer));
  // The part of the policy's name that says what it is: "WORKBENCH_INLINE".
  const std::string name = executor.substr(0, executor.find('('));
  tensorflow::NodeDef def;
  TF_RETURN_IF_ERROR(tensorflow::NodeDefBuilder(name, kPartitionOp)
                         .Device(device)
                         .Attr("executor", executor)
                         .Attr("session", session)
                         .Attr("optimizer", optimizer)
                         .Attr("nodes", Shown(**partition))
                         .Attr("number", int64_t{0})
                         .Finalize(&def, /*consume=*/true));
  auto whole = std::make_unique<Graph>((*partition)->flib_def());
  whole->set_versions((*partition)->versions());
  (*def.mutable_attr())["number"].set_i(PendingPartitions().Put(std::move(*partition)));
  absl::Status status;
  Node* node = whole->AddNode(def, &status);
  TF_RETURN_IF_ERROR(status);
  node->set_assigned_device_name(device);
  tensorflow::FixupSourceAndSinkEdges(whole.get());
  *partition = std::move(whole);
  return absl::OkStatus();
}

class PartitionPass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override {
    // A direct session makes its executors by its config, and has session_options here.
    if (options.partition_graphs == nullptr || options.session_options != nullptr) {
      return absl::OkStatus();
    }
    for (auto& [device, partition] : *options.partition_graphs) {
      TF_RETURN_IF_ERROR(Replace(device, &partition));
    }
    return absl::OkStatus();
  }
};

REGISTER_OPTIMIZATION(tensorflow::OptimizationPassRegistry::POST_PARTITIONING, kPartitionPhase,
                      GuardedPass<PartitionPass>);

}  // namespace

PendingGraphs<Graph>& PendingPartitions() {
  static auto* graphs = new PendingGraphs<Graph>(std::chrono::minutes(10));
  return *graphs;
}

}  // namespace workbench
