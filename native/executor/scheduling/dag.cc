#include "executor/scheduling/dag.h"

#include <algorithm>

namespace workbench {

Flow::Flow(int32_t nodes, const std::vector<std::pair<int32_t, int32_t>>& edges)
    : begin_(nodes + 1, 0), to_(edges.size()) {
  for (const auto& [from, to] : edges) ++begin_[from + 1];
  for (int32_t node = 0; node < nodes; ++node) begin_[node + 1] += begin_[node];
  std::vector<int32_t> next(begin_.begin(), begin_.end() - 1);
  for (const auto& [from, to] : edges) to_[next[from]++] = to;
}

std::vector<int32_t> Flow::Waiting() const {
  std::vector<int32_t> waiting(nodes(), 0);
  for (int32_t to : to_) ++waiting[to];
  return waiting;
}

std::vector<int32_t> Flow::Order() const {
  std::vector<int32_t> waiting = Waiting();
  std::vector<int32_t> ready;
  for (int32_t node = nodes() - 1; node >= 0; --node) {
    if (waiting[node] == 0) ready.push_back(node);
  }
  std::vector<int32_t> order;
  order.reserve(nodes());
  while (!ready.empty()) {
    const int32_t node = ready.back();
    ready.pop_back();
    order.push_back(node);
    for (const int32_t* to = end(node); to != begin(node);) {
      if (--waiting[*--to] == 0) ready.push_back(*to);
    }
  }
  return order;
}

Ways LongestWays(const Flow& flow, const std::vector<int64_t>& cost) {
  Ways ways;
  ways.to_sink = cost;
  ways.from_source = cost;
  const std::vector<int32_t> order = flow.Order();
  for (int32_t node : order) {
    for (const int32_t* to = flow.begin(node); to != flow.end(node); ++to) {
      ways.from_source[*to] = std::max(ways.from_source[*to], ways.from_source[node] + cost[*to]);
    }
    ways.length = std::max(ways.length, ways.from_source[node]);
  }
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    for (const int32_t* to = flow.begin(*node); to != flow.end(*node); ++to) {
      ways.to_sink[*node] = std::max(ways.to_sink[*node], cost[*node] + ways.to_sink[*to]);
    }
  }
  return ways;
}

}  // namespace workbench
