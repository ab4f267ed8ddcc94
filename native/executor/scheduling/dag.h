#ifndef WORKBENCH_EXECUTOR_SCHEDULING_DAG_H_
#define WORKBENCH_EXECUTOR_SCHEDULING_DAG_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace workbench {

// The edges of a graph without cycles, from each node to those that wait for it. An edge may be
// there twice.
class Flow {
 public:
  Flow() = default;
  Flow(int32_t nodes, const std::vector<std::pair<int32_t, int32_t>>& edges);

  int32_t nodes() const { return int32_t(begin_.size()) - 1; }
  const int32_t* begin(int32_t node) const { return to_.data() + begin_[node]; }
  const int32_t* end(int32_t node) const { return to_.data() + begin_[node + 1]; }

  // How many edges lead to each node.
  std::vector<int32_t> Waiting() const;

  // Every node after those that it waits for. Depth first: what was just made is used next, while
  // it is in the cache. Shorter than nodes() if there is a cycle.
  std::vector<int32_t> Order() const;

 private:
  std::vector<int32_t> begin_{0};
  std::vector<int32_t> to_;
};

// The longest ways through a graph whose nodes cost something.
struct Ways {
  std::vector<int64_t> to_sink;      // The node's own cost and the most costly way behind it.
  std::vector<int64_t> from_source;  // The most costly way before it, and its own.
  int64_t length = 0;                // The critical path.

  // How much longer a node may take before the critical path grows.
  int64_t Slack(int32_t node, int64_t cost) const {
    return length - (from_source[node] + to_sink[node] - cost);
  }
};

Ways LongestWays(const Flow& flow, const std::vector<int64_t>& cost);

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_SCHEDULING_DAG_H_
