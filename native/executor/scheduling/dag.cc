#include "executor/scheduling/dag.h"

#include <algorithm>

namespace workbench {

Dag::Dag(int32_t nodes, const std::vector<std::pair<int32_t, int32_t>>& edges)
    : begin_(nodes + 1, 0), to_(edges.size()) {
  for (const auto& [from, to] : edges) ++begin_[from + 1];
  for (int32_t node = 0; node < nodes; ++node) begin_[node + 1] += begin_[node];
  std::vector<int32_t> next(begin_.begin(), begin_.end() - 1);
  for (const auto& [from, to] : edges) to_[next[from]++] = to;
}

std::vector<int32_t> Dag::InDegrees() const {
  std::vector<int32_t> in_degrees(nodes(), 0);
  for (int32_t to : to_) ++in_degrees[to];
  return in_degrees;
}

std::vector<int32_t> Dag::Order() const {
  std::vector<int32_t> in_degrees = InDegrees();
  std::vector<int32_t> ready;
  for (int32_t node = nodes() - 1; node >= 0; --node) {
    if (in_degrees[node] == 0) ready.push_back(node);
  }
  std::vector<int32_t> order;
  order.reserve(nodes());
  while (!ready.empty()) {
    const int32_t node = ready.back();
    ready.pop_back();
    order.push_back(node);
    for (const int32_t* to = end(node); to != begin(node);) {
      if (--in_degrees[*--to] == 0) ready.push_back(*to);
    }
  }
  return order;
}

LongestPaths FindLongestPaths(const Dag& dag, const std::vector<int64_t>& cost) {
  LongestPaths paths;
  paths.to_sink = cost;
  paths.from_source = cost;
  const std::vector<int32_t> order = dag.Order();
  for (int32_t node : order) {
    for (const int32_t* to = dag.begin(node); to != dag.end(node); ++to) {
      paths.from_source[*to] =
          std::max(paths.from_source[*to], paths.from_source[node] + cost[*to]);
    }
    paths.length = std::max(paths.length, paths.from_source[node]);
  }
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    for (const int32_t* to = dag.begin(*node); to != dag.end(*node); ++to) {
      paths.to_sink[*node] = std::max(paths.to_sink[*node], cost[*node] + paths.to_sink[*to]);
    }
  }
  return paths;
}

}  // namespace workbench
