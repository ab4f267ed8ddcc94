#include "executor/policies/ordered/ordered_plan.h"

#include <utility>

#include "tensorflow/core/framework/node_def_util.h"

namespace workbench {
namespace {

using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeItem;
using Kind = OrderedPlan::Kind;

Kind KindOf(const ExecutorState& executor, const Node& node, const NodeItem& item) {
  if (item.is_noop) return Kind::kNothing;
  if (item.kernel_is_async || executor.Blocks(node.id())) return Kind::kAsync;
  if (node.type_string() == "_Arg") return Kind::kArgument;
  if (node.type_string() == "_Retval") return Kind::kReturn;
  return Kind::kKernel;
}

bool ReadsVariables(const Node& node) {
  for (const Edge* edge : node.in_edges()) {
    if (!edge->IsControlEdge() &&
        tensorflow::IsRefType(edge->src()->output_type(edge->src_output()))) {
      return true;
    }
  }
  return false;
}

bool IsBehindOthers(const Node& node) {
  for (const Edge* edge : node.in_edges()) {
    if (!edge->src()->IsSource()) return true;
  }
  return false;
}

bool IsConstant(const NodeItem& item) { return item.const_tensor != nullptr; }

}  // namespace

OrderedPlan::OrderedPlan(const ExecutorState& executor, const Graph& graph) {
  const tensorflow::GraphView& view = executor.immutable_state().graph_view();
  // Frames number their inputs from 0, and there is one frame only.
  num_values = executor.immutable_state().get_root_frame_info().total_inputs;
  value_attributes.resize(num_values);

  std::vector<int32_t> position(graph.num_node_ids(), -1);
  for (int32_t id : executor.dag().Order()) {
    const NodeItem* item = view.node(id);
    if (item == nullptr || item->kernel == nullptr) continue;
    const Node& node = *graph.FindNodeId(id);
    const Kind kind = KindOf(executor, node, *item);
    has_async |= kind == Kind::kAsync;
    if (IsConstant(*item)) {
      for (const Edge* edge : node.out_edges()) {
        if (edge->IsControlEdge() || edge->dst()->IsSink()) continue;
        const int32_t value = view.node_ref(edge->dst()->id()).input_start + edge->dst_input();
        constants.push_back({value, item->const_tensor});
        value_attributes[value] = item->output_attrs()[0];
      }
      if (!IsBehindOthers(node)) {
        settled.push_back(id);
        continue;
      }
      // Its value is there from the start, but its readers must wait for the nodes before it.
      position[id] = calls.size();
      calls.push_back(
          {item, item->kernel, item->input_start, 0, 0, 0, -1, Kind::kNothing, false});
      continue;
    }
    int32_t index = -1;
    if (kind == Kind::kArgument || kind == Kind::kReturn) {
      TF_CHECK_OK(tensorflow::GetNodeAttr(node.attrs(), "index", &index));
    }
    position[id] = calls.size();
    calls.push_back({item, item->kernel, item->input_start,
                     int32_t(target_begins.size()), item->num_inputs, item->num_outputs, index,
                     kind, ReadsVariables(node)});
    std::vector<std::vector<int32_t>> of_output(item->num_outputs);
    for (const tensorflow::EdgeInfo& edge : item->output_edges()) {
      // Once the state is initialized, slots count from the frame's first input.
      of_output[edge.output_slot].push_back(edge.input_slot);
      value_attributes[edge.input_slot] = item->output_attrs()[edge.output_slot];
    }
    for (const std::vector<int32_t>& values : of_output) {
      target_begins.push_back(targets.size());
      targets.insert(targets.end(), values.begin(), values.end());
    }
    target_begins.push_back(targets.size());
  }

  if (has_async) {
    std::vector<std::pair<int32_t, int32_t>> edges;
    for (const Edge* edge : graph.edges()) {
      const int32_t from = position[edge->src()->id()], to = position[edge->dst()->id()];
      if (from >= 0 && to >= 0) edges.emplace_back(from, to);
    }
    successors = Dag(calls.size(), edges);
    in_degrees = successors.InDegrees();
    return;
  }
  // In a fixed order no node has to wait for one that does nothing.
  std::vector<Call> doing;
  for (const Call& call : calls) {
    if (call.kind == Kind::kNothing) {
      settled.push_back(call.item->node_id);
    } else {
      doing.push_back(call);
    }
  }
  calls = std::move(doing);
}

}  // namespace workbench
