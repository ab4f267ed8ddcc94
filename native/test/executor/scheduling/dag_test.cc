#include "executor/scheduling/dag.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "test/support/check.h"

namespace workbench {
namespace {

using Edges = std::vector<std::pair<int32_t, int32_t>>;
using Nodes = std::vector<int32_t>;

// A graph without cycles whose numbers say nothing of its order.
Edges RandomEdges(int32_t nodes, double density, std::mt19937* random) {
  Nodes place(nodes);
  std::iota(place.begin(), place.end(), 0);
  std::shuffle(place.begin(), place.end(), *random);
  Edges edges;
  for (int32_t from = 0; from < nodes; ++from) {
    for (int32_t to = from + 1; to < nodes; ++to) {
      if (std::bernoulli_distribution(density)(*random)) edges.emplace_back(place[from], place[to]);
    }
  }
  std::shuffle(edges.begin(), edges.end(), *random);
  return edges;
}

std::vector<int64_t> RandomCosts(int32_t nodes, std::mt19937* random) {
  std::vector<int64_t> cost(nodes);
  for (int64_t& each : cost) each = int64_t((*random)() % 8);  // 0 among them.
  return cost;
}

// The most costly of all paths from a node, each of them walked.
int64_t WalkAll(const Edges& edges, const std::vector<int64_t>& cost, int32_t node,
                bool backwards) {
  int64_t behind = 0;
  for (const auto& [from, to] : edges) {
    if ((backwards ? to : from) != node) continue;
    behind = std::max(behind, WalkAll(edges, cost, backwards ? from : to, backwards));
  }
  return cost[node] + behind;
}

TEST(AGraphOfNothing) {
  const Dag none;
  CHECK_EQ(none.nodes(), 0);
  CHECK(none.Order().empty());
  CHECK_EQ(FindLongestPaths(none, {}).length, 0);
  const Dag loose(3, {});
  CHECK(loose.Order() == Nodes({0, 1, 2}));
  CHECK_EQ(FindLongestPaths(loose, {4, 9, 2}).length, 9);
}

TEST(ListsWhoWaitsForANode) {
  const Dag dag(4, {{0, 3}, {2, 1}, {0, 1}, {0, 3}});
  CHECK(Nodes(dag.begin(0), dag.end(0)) == Nodes({3, 1, 3}));
  CHECK(Nodes(dag.begin(1), dag.end(1)).empty());
  CHECK(Nodes(dag.begin(2), dag.end(2)) == Nodes({1}));
  CHECK(Nodes(dag.begin(3), dag.end(3)).empty());
  CHECK(dag.InDegrees() == Nodes({0, 2, 0, 2}));
}

TEST(GoesOnWithWhatWasJustMade) {
  // Two chains: the first to its end, then the second.
  CHECK(Dag(6, {{0, 2}, {2, 4}, {1, 3}, {3, 5}}).Order() == Nodes({0, 2, 4, 1, 3, 5}));
}

TEST(ACopyStandsAlone) {
  Dag copy;
  {
    const Dag dag(3, {{2, 1}, {1, 0}});
    copy = dag;
  }
  CHECK(copy.Order() == Nodes({2, 1, 0}));
}

TEST(ACycleIsLeftOut) {
  const Dag dag(4, {{0, 1}, {1, 2}, {2, 1}, {2, 3}});
  CHECK(dag.Order() == Nodes({0}));
  CHECK(Dag(1, {{0, 0}}).Order().empty());
}

TEST(EveryNodeComesOnceAndAfterThoseItWaitsFor) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const int32_t nodes = 1 + int32_t(random() % 60);
    const Edges edges = RandomEdges(nodes, (random() % 10) / 20.0, &random);
    const Nodes order = Dag(nodes, edges).Order();
    CHECK_EQ(order.size(), size_t(nodes));
    Nodes place(nodes, -1);
    for (int32_t i = 0; i < nodes; ++i) {
      CHECK_EQ(place[order[i]], -1);
      place[order[i]] = i;
    }
    for (const auto& [from, to] : edges) CHECK(place[from] < place[to]);
  }
}

TEST(LongestWaysAreThoseOfAllWays) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    const int32_t nodes = 1 + int32_t(random() % 9);
    const Edges edges = RandomEdges(nodes, 0.4, &random);
    const std::vector<int64_t> cost = RandomCosts(nodes, &random);
    const LongestPaths paths = FindLongestPaths(Dag(nodes, edges), cost);
    int64_t length = 0;
    for (int32_t node = 0; node < nodes; ++node) {
      CHECK_EQ(paths.to_sink[node], WalkAll(edges, cost, node, /*backwards=*/false));
      CHECK_EQ(paths.from_source[node], WalkAll(edges, cost, node, /*backwards=*/true));
      length = std::max(length, paths.to_sink[node]);
    }
    CHECK_EQ(paths.length, length);
  }
}

TEST(SlackIsWhatANodeMayTakeMore) {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    const int32_t nodes = 1 + int32_t(random() % 20);
    const Dag dag(nodes, RandomEdges(nodes, 0.25, &random));
    const std::vector<int64_t> cost = RandomCosts(nodes, &random);
    const LongestPaths paths = FindLongestPaths(dag, cost);
    bool some_has_none = false;
    for (int32_t node = 0; node < nodes; ++node) {
      const int64_t slack = paths.Slack(node, cost[node]);
      CHECK(slack >= 0);
      some_has_none |= slack == 0;
      std::vector<int64_t> more = cost;
      more[node] += slack;
      CHECK_EQ(FindLongestPaths(dag, more).length, paths.length);
      ++more[node];
      CHECK_EQ(FindLongestPaths(dag, more).length, paths.length + 1);
    }
    CHECK(some_has_none);  // The critical path itself.
  }
}

TEST(AnEdgeMayBeThereTwice) {
  std::mt19937 random(4);
  for (int round = 0; round < 100; ++round) {
    const int32_t nodes = 1 + int32_t(random() % 30);
    const Edges edges = RandomEdges(nodes, 0.2, &random);
    Edges twice;
    for (const auto& edge : edges) twice.insert(twice.end(), 1 + random() % 3, edge);
    const std::vector<int64_t> cost = RandomCosts(nodes, &random);
    const Dag once_dag(nodes, edges), twice_dag(nodes, twice);
    CHECK(twice_dag.Order().size() == size_t(nodes));
    const LongestPaths once_paths = FindLongestPaths(once_dag, cost);
    const LongestPaths twice_paths = FindLongestPaths(twice_dag, cost);
    CHECK(once_paths.to_sink == twice_paths.to_sink);
    CHECK(once_paths.from_source == twice_paths.from_source);
    CHECK_EQ(once_paths.length, twice_paths.length);
    const Nodes waiting = twice_dag.InDegrees();
    CHECK_EQ(std::accumulate(waiting.begin(), waiting.end(), size_t{0}), twice.size());
  }
}

// As deep as graphs of many unrolled steps are: nothing here recurses.
TEST(ALongChain) {
  constexpr int32_t kNodes = 300'000;
  Edges edges;
  for (int32_t node = 1; node < kNodes; ++node) edges.emplace_back(node, node - 1);
  const Dag dag(kNodes, edges);
  const Nodes order = dag.Order();
  CHECK_EQ(order.front(), kNodes - 1);
  CHECK_EQ(order.back(), 0);
  const LongestPaths paths = FindLongestPaths(dag, std::vector<int64_t>(kNodes, 3));
  CHECK_EQ(paths.length, int64_t{3} * kNodes);
  CHECK_EQ(paths.to_sink[0], 3);
}

}  // namespace
}  // namespace workbench
