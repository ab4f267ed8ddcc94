#include "rewriting/graph/cycle_check.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace workbench {
namespace {

using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;

constexpr size_t kMostNodesListed = 12;

// Node ids before and after each node, waits included.
class WaitGraph {
 public:
  WaitGraph(const Graph& graph, const std::vector<StageWait>& waits)
      : graph_(graph), virtual_before_(graph.num_node_ids()), virtual_after_(graph.num_node_ids()) {
    for (const StageWait& wait : waits) {
      for (const Node* put : wait.puts) {
        virtual_before_[wait.take->id()].push_back(put->id());
        virtual_after_[put->id()].push_back(wait.take->id());
      }
    }
  }

  template <typename Visit>
  void ForBefore(const Node& node, Visit visit) const {
    for (const Edge* edge : node.in_edges()) {
      if (!edge->src()->IsNextIteration()) visit(edge->src()->id());
    }
    for (int id : virtual_before_[node.id()]) visit(id);
  }

  template <typename Visit>
  void ForAfter(const Node& node, Visit visit) const {
    if (!node.IsNextIteration()) {
      for (const Edge* edge : node.out_edges()) visit(edge->dst()->id());
    }
    for (int id : virtual_after_[node.id()]) visit(id);
  }

  // How many nodes each one still waits for, once all that can run has run.
  std::vector<int> Stuck() const {
    std::vector<int> pending(graph_.num_node_ids(), 0);
    std::vector<const Node*> ready;
    for (const Node* node : graph_.nodes()) {
      int& count = pending[node->id()];
      ForBefore(*node, [&count](int) { ++count; });
      if (count == 0) ready.push_back(node);
    }
    while (!ready.empty()) {
      const Node* node = ready.back();
      ready.pop_back();
      ForAfter(*node, [&](int id) {
        if (--pending[id] == 0) ready.push_back(graph_.FindNodeId(id));
      });
    }
    return pending;
  }

 private:
  const Graph& graph_;
  std::vector<std::vector<int>> virtual_before_;
  std::vector<std::vector<int>> virtual_after_;
};

// A cycle among the stuck nodes, in the order of the edges; empty when none is stuck. Each of them
// waits for another, so that walking back must come around.
std::vector<const Node*> FindCycle(const Graph& graph, const WaitGraph& waits) {
  const std::vector<int> pending = waits.Stuck();
  const auto stuck = std::find_if(pending.begin(), pending.end(), [](int n) { return n > 0; });
  if (stuck == pending.end()) return {};
  int id = static_cast<int>(stuck - pending.begin());
  std::vector<bool> seen(pending.size(), false);
  std::vector<const Node*> path;
  while (!seen[id]) {
    seen[id] = true;
    path.push_back(graph.FindNodeId(id));
    int next = id;
    waits.ForBefore(*path.back(), [&](int before) {
      if (pending[before] > 0) next = before;
    });
    id = next;
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), graph.FindNodeId(id)));
  std::reverse(path.begin(), path.end());
  return path;
}

std::string Listed(const std::vector<const Node*>& cycle, size_t first) {
  std::string text;
  const size_t shown = std::min(cycle.size(), kMostNodesListed);
  for (size_t i = 0; i < shown; ++i) {
    absl::StrAppend(&text, "'", cycle[(first + i) % cycle.size()]->name(), "' -> ");
  }
  if (shown < cycle.size()) {
    absl::StrAppend(&text, "… (", cycle.size() - shown, " more) -> '",
                    cycle[(first + cycle.size() - 1) % cycle.size()]->name(), "' -> ");
  }
  return absl::StrCat(text, "'", cycle[first]->name(), "'");
}

}  // namespace

absl::Status CheckNoCycle(const Graph& graph, const std::vector<StageWait>& waits) {
  const std::vector<const Node*> cycle = FindCycle(graph, WaitGraph(graph, waits));
  if (cycle.empty()) return absl::OkStatus();
  for (size_t i = 0; i < cycle.size(); ++i) {
    const Node* put = cycle[(i + cycle.size() - 1) % cycle.size()];
    for (const StageWait& wait : waits) {
      const bool waited = std::find(wait.puts.begin(), wait.puts.end(), put) != wait.puts.end();
      if (cycle[i] != wait.take || !waited) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "stage plan, stage '", wait.stage, "': put '", put->name(), "' would wait for take '",
          wait.take->name(), "', which waits for the put: ", Listed(cycle, i),
          "; whatever a moved node reads must be moved too, or not depend on the source"));
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("stage plan: the graph would have a cycle: ", Listed(cycle, 0),
                   "; the plan was made for another graph, or is wrong"));
}

}  // namespace workbench
