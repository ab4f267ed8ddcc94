#include "executor/step/executor_state.h"

#include <utility>

#include "executor/memory/caching_device.h"
#include "executor/step/waiting_ops.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/util/determinism.h"
#include "tracing/op_events.h"

namespace workbench {
namespace {

using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeItem;

int32_t NextNumber() {
  static std::atomic<int32_t> next{0};
  return next.fetch_add(1, std::memory_order_relaxed);
}

Dag DagOf(const Graph& graph) {
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (const Edge* edge : graph.edges()) {
    if (edge->dst()->IsSink() || edge->src()->IsNextIteration()) continue;
    edges.emplace_back(edge->src()->id(), edge->dst()->id());
  }
  return Dag(graph.num_node_ids(), edges);
}

// Asynchronous kernels that call functions work; all others only wait.
bool CallsFunction(const NodeItem& item) {
  const auto& op = item.kernel->type_string();
  return op == "PartitionedCall" || op == "StatefulPartitionedCall" || op == "If" ||
         op == "StatelessIf" || op == "While" || op == "StatelessWhile" || op == "Case" ||
         op == "StatelessCase" || op == "SymbolicGradient" || op == "For";
}

}  // namespace

ExecutorState::ExecutorState(std::string type, ExecutorPolicy policy,
                               const CostModel::Settings& settings,
                               const tensorflow::LocalExecutorParams& params)
    : type_(std::move(type)),
      policy_(policy),
      settings_(settings),
      number_(NextNumber()),
      immutable_state_(params),
      device_(params.device),
      keeps_order_(tensorflow::OpOrderDeterminismRequired()) {
  if (policy != ExecutorPolicy::kNormal) caching_device_ = NewCachingDevice(params.device);
  if (caching_device_ != nullptr) device_ = caching_device_.get();
}

absl::Status ExecutorState::Initialize(const Graph& graph) {
  TF_RETURN_IF_ERROR(immutable_state_.Initialize(graph));
  dag_ = DagOf(graph);
  blocks_.assign(graph.num_node_ids(), false);
  waits_.assign(graph.num_node_ids(), false);
  calls_waiting_function_.assign(graph.num_node_ids(), false);
  FindWaiting(graph);
  std::vector<CostedNode> costed(graph.num_node_ids());
  std::vector<bool> expensive(graph.num_node_ids(), false);
  for (const Node* node : graph.nodes()) {
    if (node->IsSink()) continue;
    const NodeItem& item = immutable_state_.graph_view().node_ref(node->id());
    const auto& op = node->type_string();
    waits_[node->id()] = (item.kernel_is_async && !CallsFunction(item)) || blocks_[node->id()];
    reads_checkpoints_ |= op == "Restore" || op == "RestoreSlice" || op == "RestoreV2";
    expensive[node->id()] = item.kernel->IsExpensive();
    costed[node->id()] = {node->name(), node->type_string(), device()->name(),
                          item.kernel->IsExpensive()};
  }
  kernel_cost_ = std::make_unique<KernelCost>(expensive);
  if (policy_ == ExecutorPolicy::kCostModel) {
    cost_model_ = std::make_unique<CostModel>(settings_, std::move(costed), dag_);
  }
  return absl::OkStatus();
}

void ExecutorState::FindWaiting(const Graph& graph) {
  const auto& library = *params().function_library->GetFunctionLibraryDefinition();
  std::vector<int32_t> python;
  int may_wait = 0;
  for (const Node* node : graph.op_nodes()) {
    const int32_t id = node->id();
    blocks_[id] = BlocksThread(node->type_string());
    has_blocking_ |= blocks_[id];
    if (policy_ == ExecutorPolicy::kNormal) continue;
    may_wait += MayWait(*node, library);
    if (RunsPython(node->type_string())) python.push_back(id);
    if (policy_ == ExecutorPolicy::kInline) {
      calls_waiting_function_[id] = CallsFunctionThatMayWait(*node, library);
    }
  }
  // Python code that is the only node that may wait has no other node to wait for.
  if (may_wait < 2) return;
  for (int32_t id : python) blocks_[id] = has_blocking_ = true;
}

uint32_t ExecutorState::FirstTracedNode() const {
  int64_t first = first_traced_.load(std::memory_order_acquire);
  if (TF_PREDICT_TRUE(first >= 0)) return first;
  std::lock_guard<std::mutex> lock(trace_mu_);
  first = first_traced_.load(std::memory_order_relaxed);
  if (first >= 0) return first;
  std::vector<TracedNode> nodes(immutable_state_.graph_view().num_nodes());
  std::vector<TracedEdge> edges;
  for (int i = 0; i < immutable_state_.graph_view().num_nodes(); ++i) {
    const NodeItem* item = immutable_state_.graph_view().node(i);
    if (item == nullptr || item->kernel == nullptr) continue;
    nodes[i] = {item->kernel->name(), item->kernel->type_string(), device()->name()};
    for (const tensorflow::EdgeInfo& edge : item->output_edges()) {
      edges.push_back({uint32_t(i), uint32_t(edge.dst_id), false});
    }
    for (const tensorflow::ControlEdgeInfo& edge : item->output_control_edges()) {
      edges.push_back({uint32_t(i), uint32_t(edge.dst_id), true});
    }
  }
  first = OpEvents::Get().AddNodes(std::move(nodes), std::move(edges));
  first_traced_.store(first, std::memory_order_release);
  return first;
}

}  // namespace workbench
