#include "rewriting/choice/run_ends.h"

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rewriting/choice/add_choices.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace workbench {
namespace {

using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;
using Names = absl::flat_hash_set<std::string>;

// On a put: what its producer evaluates and feeds. In workbench/core/session/prefetch_runner.py.
constexpr char kFedAttr[] = "_workbench_fed";
constexpr char kArgPrefix[] = "_arg_";
constexpr char kConnectionPrefix[] = "_identity_";

bool IsOfClient(const Node& node) {
  bool by_client = false;
  return tensorflow::TryGetNodeAttr(node.attrs(), "client_terminated", &by_client) && by_client;
}

// The node whose output a run feeds by this one; empty where it is no feed.
std::string FedNode(const Node& node) {
  if (node.type_string() == "_Recv") {
    if (!IsOfClient(node)) return "";
    const std::string tensor = tensorflow::GetNodeAttrString(node.attrs(), "tensor_name");
    return tensor.substr(0, tensor.rfind(':'));
  }
  const std::string& name = node.name();
  const size_t last = name.rfind('_');
  // A callable that connects a tensor to this one: _identity_<node>_<output>
  if (node.IsIdentity() && absl::StartsWith(name, kConnectionPrefix)) {
    const size_t begin = sizeof(kConnectionPrefix) - 1;
    return last > begin ? name.substr(begin, last - begin) : "";
  }
  // _arg_<node>_<output>_<number of the feed>
  if (!node.IsArg() || !absl::StartsWith(name, kArgPrefix)) return "";
  const size_t output = name.rfind('_', last - 1);
  const size_t begin = sizeof(kArgPrefix) - 1;
  return output > begin ? name.substr(begin, output - begin) : "";
}

// What no run feeds without another result than the plan's: stages compute it ahead.
void AddMoved(const PlannedStage& stage, Names* inside) {
  Names fed;
  for (const tensorflow::NodeDef& node : stage.nodes.node()) {
    std::vector<std::string> names;
    if (tensorflow::TryGetNodeAttr(node, kFedAttr, &names)) fed.insert(names.begin(), names.end());
  }
  for (size_t i = 0; i < stage.moved.size(); ++i) {
    const std::string& op = stage.moved_ops[i];
    if (op != "Placeholder" && op != "PlaceholderV2" && !fed.contains(stage.moved[i])) {
      inside->insert(stage.moved[i]);
    }
  }
}

bool IsStockBranch(const Edge& edge) { return IsOfBranch(edge, /*rewritten=*/false); }

// The nodes that a run needs although the plan's come in the place of the user's.
absl::flat_hash_set<const Node*> NeededByPlan(const Graph& graph) {
  absl::flat_hash_map<const Node*, int> readers;
  std::vector<const Node*> open;
  absl::flat_hash_set<const Node*> needed;
  for (const Node* node : graph.op_nodes()) needed.insert(node);
  // What stock branches alone lead to is not needed, nor what it alone needs.
  const auto count = [&](const Node* node) {
    int left = 0;
    for (const Edge* edge : node->out_edges()) {
      left += edge->dst()->IsOp() && !IsStockBranch(*edge);
    }
    return left;
  };
  for (const Node* node : graph.op_nodes()) {
    const auto& edges = node->out_edges();
    bool in_stock = false;
    for (const Edge* edge : edges) in_stock = in_stock || IsStockBranch(*edge);
    readers[node] = count(node);
    if (in_stock && readers[node] == 0) open.push_back(node);
  }
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (needed.erase(node) == 0) continue;
    for (const Edge* edge : node->in_edges()) {
      if (!edge->src()->IsOp() || IsStockBranch(*edge)) continue;
      if (--readers[edge->src()] == 0) open.push_back(edge->src());
    }
  }
  return needed;
}

std::string FeedInside(const StagePlan& plan, const Graph& graph) {
  Names inside(plan.fusion.inside.begin(), plan.fusion.inside.end());
  for (const PlannedStage& stage : plan.stages) AddMoved(stage, &inside);
  for (const Node* node : graph.op_nodes()) {
    const std::string fed = FedNode(*node);
    if (!fed.empty() && inside.contains(fed)) return absl::StrCat("it feeds '", fed, "'");
  }
  return "";
}

std::string PartOfGroup(const StagePlan& plan, const Names& needed) {
  for (const PlannedGroup& group : plan.fusion.groups) {
    const std::string* lacking = nullptr;
    const std::string* has = nullptr;
    for (const std::string& member : group.members) {
      // TensorFlow's optimizer may leave out a node that does nothing, but not what it waits for,
      // nor the end of its branch.
      const bool is_needed = needed.contains(WaitName(member, /*rewritten=*/true)) ||
                             needed.contains(BranchName(member, /*rewritten=*/true)) ||
                             needed.contains(absl::StrCat(kRewritten, member));
      (is_needed ? has : lacking) = &member;
    }
    if (has == nullptr || lacking == nullptr) continue;
    return absl::StrCat("it needs '", *has, "' and not '", *lacking, "', which '", group.op,
                        "' does together");
  }
  return "";
}

// The feeds by a client that a node waits for, by the plan's nodes or by the user's.
absl::flat_hash_set<const Node*> FeedsBefore(const Node& node, bool rewritten) {
  absl::flat_hash_set<const Node*> seen = {&node}, feeds;
  std::vector<const Node*> open = {&node};
  while (!open.empty()) {
    const Node* reader = open.back();
    open.pop_back();
    if (reader->IsRecv() && IsOfClient(*reader)) feeds.insert(reader);
    for (const Edge* edge : reader->in_edges()) {
      if (IsOfBranch(*edge, !rewritten) || !seen.insert(edge->src()).second) continue;
      open.push_back(edge->src());
    }
  }
  return feeds;
}

// A client sends the feeds of a partial run one by one. On a server it sends those of all runs so,
// and nothing in the graph tells which run is partial.
std::string FetchBeforeFeeds(const Graph& graph) {
  for (const Node* fetch : graph.op_nodes()) {
    if (!fetch->IsSend() || !IsOfClient(*fetch)) continue;
    const auto enough = FeedsBefore(*fetch, /*rewritten=*/false);
    for (const Node* feed : FeedsBefore(*fetch, /*rewritten=*/true)) {
      if (enough.contains(feed)) continue;
      return absl::StrCat("it may fetch '",
                          tensorflow::GetNodeAttrString(fetch->attrs(), "tensor_name"),
                          "' before it feeds '", FedNode(*feed), "'");
    }
  }
  return "";
}

}  // namespace

std::string NeedsStock(const StagePlan& plan, const Graph& graph) {
  const std::string fed = FeedInside(plan, graph);
  if (!fed.empty()) return fed;
  Names names;
  for (const Node* node : graph.op_nodes()) names.insert(node->name());
  const std::string part = PartOfGroup(plan, names);
  if (!part.empty()) return part;
  const std::string early = FetchBeforeFeeds(graph);
  if (!early.empty()) return early;
  const Names reads(plan.fusion.reads.begin(), plan.fusion.reads.end());
  if (reads.empty()) return "";
  for (const Node* node : NeededByPlan(graph)) {
    if (reads.contains(node->name())) return absl::StrCat("it fetches '", node->name(), "'");
  }
  return "";
}

}  // namespace workbench
