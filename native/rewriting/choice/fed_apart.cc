#include "rewriting/choice/fed_apart.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rewriting/choice/add_choices.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/platform/statusor.h"

namespace workbench {
namespace {

using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeDef;
using Nodes = absl::flat_hash_set<Node*>;
using Feeds = std::vector<uint64_t>;  // A bit for each placeholder.

bool IsPlaceholder(const Node& node) { return absl::StartsWith(node.type_string(), "Placeholder"); }

bool Includes(const Feeds& all, const Feeds& part) {
  for (size_t i = 0; i < all.size(); ++i) {
    if ((part[i] & ~all[i]) != 0) return false;
  }
  return true;
}

// The placeholders that each node depends on where all choices are the user's. By id of the node;
// without a placeholder it is empty.
std::vector<Feeds> FeedsOfNodes(const Graph& graph) {
  absl::flat_hash_map<const Node*, size_t> bits;
  for (const Node* node : graph.op_nodes()) {
    if (IsPlaceholder(*node)) bits.emplace(node, bits.size());
  }
  if (bits.empty()) return {};
  std::vector<Feeds> feeds(graph.num_node_ids(), Feeds((bits.size() + 63) / 64));
  // An edge back to the begin of a loop adds nothing: no op of a plan is in one.
  std::vector<Node*> order;
  tensorflow::GetReversePostOrder(graph, &order);
  for (const Node* node : order) {
    Feeds& own = feeds[node->id()];
    const auto bit = bits.find(node);
    if (bit != bits.end()) own[bit->second / 64] |= uint64_t{1} << (bit->second % 64);
    for (const Edge* edge : node->in_edges()) {
      if (IsOfBranch(*edge, /*rewritten=*/true)) continue;
      const Feeds& before = feeds[edge->src()->id()];
      for (size_t i = 0; i < own.size(); ++i) own[i] |= before[i];
    }
  }
  return feeds;
}

// The user's nodes, choices among them, to which a node of the plan leads.
Nodes EndsBehind(Node* node, const Nodes& of_plan) {
  Nodes ends, seen = {node};
  std::vector<Node*> open = {node};
  while (!open.empty()) {
    Node* reader = open.back();
    open.pop_back();
    for (Node* behind : reader->out_nodes()) {
      if (!behind->IsOp() || !seen.insert(behind).second) continue;
      if (of_plan.contains(behind)) {
        open.push_back(behind);
      } else {
        ends.insert(behind);
      }
    }
  }
  return ends;
}

bool MayHide(const Edge& edge) {
  if (edge.IsControlEdge()) return false;
  const tensorflow::DataType type = edge.src()->output_type(edge.src_output());
  return !tensorflow::IsRefType(type) && type != tensorflow::DT_RESOURCE;
}

class InputHider {
 public:
  InputHider(std::vector<Feeds> feeds, Graph* graph) : feeds_(std::move(feeds)), graph_(*graph) {}

  absl::Status HideOf(Node* reader, const Nodes& of_plan) {
    const Nodes ends = EndsBehind(reader, of_plan);
    std::vector<const Edge*> hidden;
    for (const Edge* edge : reader->in_edges()) {
      if (!MayHide(*edge) || of_plan.contains(edge->src())) continue;
      const Nodes dependent = ThatDependOn(ends, feeds_[edge->src()->id()]);
      if (dependent.empty() || dependent.size() == ends.size()) continue;
      hidden.push_back(edge);
      TF_RETURN_IF_ERROR(Keep(*edge, dependent));
    }
    for (const Edge* edge : hidden) {
      Node* input = inputs_.at({edge->src()->id(), edge->src_output()}).input;
      const int place = edge->dst_input();
      graph_.RemoveEdge(edge);
      graph_.AddEdge(input, 0, reader, place);
    }
    return absl::OkStatus();
  }

 private:
  struct Pair {
    Node* source;
    Node* input;
  };

  Nodes ThatDependOn(const Nodes& ends, const Feeds& feeds) const {
    Nodes found;
    for (Node* end : ends) {
      if (Includes(feeds_[end->id()], feeds)) found.insert(end);
    }
    return found;
  }

  absl::StatusOr<Node*> Add(const char* op, const Edge& edge) {
    NodeDef def;
    def.set_name(graph_.NewName(absl::StrCat(kRewritten, "input/", edge.src()->name())));
    def.set_op(op);
    def.set_device(edge.src()->requested_device());
    tensorflow::AddNodeAttr("T", edge.src()->output_type(edge.src_output()), &def);
    return graph_.AddNode(std::move(def));
  }

  // These nodes keep the tensor in the runs that have one of them.
  absl::Status Keep(const Edge& edge, const Nodes& dependent) {
    Pair& pair = inputs_[{edge.src()->id(), edge.src_output()}];
    if (pair.source == nullptr) {
      TF_ASSIGN_OR_RETURN(pair.source, Add(kChoiceSourceOp, edge));
      graph_.AddEdge(edge.src(), edge.src_output(), pair.source, 0);
      TF_ASSIGN_OR_RETURN(pair.input, Add(kChoiceInputOp, edge));
      pair.input->AddAttr("source", pair.source->name());
    }
    for (Node* node : dependent) graph_.AddControlEdge(pair.source, node);
    return absl::OkStatus();
  }

  const std::vector<Feeds> feeds_;
  Graph& graph_;
  std::map<std::pair<int, int>, Pair> inputs_;  // By id and output of what is read.
};

// Has the readers of an input read, and wait for, what its source does.
void Show(const Node& source, Node* input, Graph* graph) {
  const Edge* read = nullptr;
  std::vector<Node*> before;
  for (const Edge* edge : source.in_edges()) {
    if (!edge->IsControlEdge()) {
      read = edge;
    } else if (edge->src()->IsOp()) {
      before.push_back(edge->src());
    }
  }
  const std::vector<const Edge*> uses(input->out_edges().begin(), input->out_edges().end());
  for (const Edge* use : uses) {
    Node* reader = use->dst();
    if (!reader->IsOp()) continue;
    const int place = use->dst_input();
    graph->RemoveEdge(use);
    for (Node* node : before) graph->AddControlEdge(node, reader);
    graph->AddEdge(read->src(), place < 0 ? Graph::kControlSlot : read->src_output(), reader, place);
  }
  graph->RemoveNode(input);
}

}  // namespace

absl::Status HideInputs(const PlannedFusion& fusion, Graph* graph) {
  tensorflow::FixupSourceAndSinkEdges(graph);
  std::vector<Feeds> feeds = FeedsOfNodes(*graph);
  if (feeds.empty()) return absl::OkStatus();
  absl::flat_hash_set<std::string> added;
  for (const NodeDef& node : fusion.added.node()) added.insert(node.name());
  Nodes of_plan;
  for (Node* node : graph->op_nodes()) {
    if (added.contains(node->name()) || absl::StartsWith(node->name(), kRewritten)) {
      of_plan.insert(node);
    }
  }
  InputHider hider(std::move(feeds), graph);
  const std::vector<Node*> nodes(graph->op_nodes().begin(), graph->op_nodes().end());
  for (Node* node : nodes) {
    if (of_plan.contains(node)) TF_RETURN_IF_ERROR(hider.HideOf(node, of_plan));
  }
  tensorflow::FixupSourceAndSinkEdges(graph);
  return absl::OkStatus();
}

std::string ShowInputs(Graph* graph) {
  absl::flat_hash_map<std::string, Node*> sources;
  std::vector<Node*> inputs;
  for (Node* node : graph->op_nodes()) {
    if (node->type_string() == kChoiceSourceOp) sources.emplace(node->name(), node);
    if (node->type_string() == kChoiceInputOp) inputs.push_back(node);
  }
  std::string lacking;
  for (Node* input : inputs) {
    const auto source = sources.find(tensorflow::GetNodeAttrString(input->attrs(), "source"));
    if (source != sources.end()) {
      Show(*source->second, input, graph);
    } else {
      lacking = absl::StrCat("it does not compute what '", input->name(), "' gives");
    }
  }
  for (const auto& [name, source] : sources) graph->RemoveNode(source);
  tensorflow::FixupSourceAndSinkEdges(graph);
  return lacking;
}

}  // namespace workbench
