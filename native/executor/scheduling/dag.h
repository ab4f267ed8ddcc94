#ifndef WORKBENCH_EXECUTOR_SCHEDULING_DAG_H_
#define WORKBENCH_EXECUTOR_SCHEDULING_DAG_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace workbench {

// The edges of a directed acyclic graph, by the node that they leave. Two nodes may have several
// edges between them.
class Dag {
 public:
  Dag() = default;
  Dag(int32_t nodes, const std::vector<std::pair<int32_t, int32_t>>& edges);

  int32_t nodes() const { return int32_t(begin_.size()) - 1; }
  // The successors of a node: [begin(node), end(node)).
  const int32_t* begin(int32_t node) const { return to_.data() + begin_[node]; }
  const int32_t* end(int32_t node) const { return to_.data() + begin_[node + 1]; }

  // How many edges lead to each node.
  std::vector<int32_t> InDegrees() const;

  // A topological order. Depth first, so that a node reads what was computed just before, while it
  // is in the cache. Shorter than nodes() if the edges have a cycle after all.
  std::vector<int32_t> Order() const;

 private:
  std::vector<int32_t> begin_{0};
  std::vector<int32_t> to_;
};

// The longest paths through a graph whose nodes have costs.
struct LongestPaths {
  std::vector<int64_t> to_sink;      // From each node to the end, the node's own cost included.
  std::vector<int64_t> from_source;  // From the start to each node, its own cost included.
  int64_t length = 0;                // The critical path.

  // How much longer a node may take before the critical path grows.
  int64_t Slack(int32_t node, int64_t cost) const {
    return length - (from_source[node] + to_sink[node] - cost);
  }
};

LongestPaths FindLongestPaths(const Dag& dag, const std::vector<int64_t>& cost);

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_SCHEDULING_DAG_H_
