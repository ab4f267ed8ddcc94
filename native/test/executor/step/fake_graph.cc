#include "test/executor/step/fake_graph.h"

#include <algorithm>
#include <new>
#include <random>
#include <string>
#include <utility>

#include "executor/memory/block_cache.h"
#include "test/support/check.h"

namespace workbench::test {
namespace {

constexpr CostModel::Settings kLearning{/*start_step=*/2, /*stop_step=*/6, /*batch_ns=*/500,
                                        /*batch_ops=*/4};

}  // namespace

FakeGraph::FakeGraph(int32_t nodes, unsigned seed) : kind(nodes, Kind::kHere), sums(nodes) {
  std::mt19937 random(seed);
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t node = 0; node < nodes; ++node) {
    sums[node] = node;
    for (int each = node == 0 ? 0 : random() % 4; each > 0; --each) {
      const int32_t before = random() % node;
      edges.emplace_back(before, node);
      sums[node] += sums[before];
    }
    const int drawn = random() % 8;
    if (drawn < 2) kind[node] = drawn == 0 ? Kind::kElsewhere : Kind::kWaits;
  }
  dag = Dag(nodes, edges);
  reads = dag.InDegrees();
  int32_t slots = 0;
  for (int32_t node = 0; node < nodes; ++node) {
    first_slot.push_back(slots);
    slots += reads[node];
  }
  std::vector<int32_t> next_slot = first_slot;
  for (int32_t node = 0; node < nodes; ++node) {
    first_edge.push_back(int32_t(slot_of.size()));
    for (const int32_t* to = dag.begin(node); to != dag.end(node); ++to) {
      slot_of.push_back(next_slot[*to]++);
    }
  }
  std::vector<CostedNode> costed;
  for (int32_t node = 0; node < nodes; ++node) {
    costed.push_back({std::to_string(node), "Fake", "CPU", node % 5 == 0});
  }
  model = std::make_unique<CostModel>(kLearning, costed, dag);
}

FakePropagator::FakePropagator(const FakeGraph& graph)
    : graph_(graph),
      waiting_(graph.reads.size()),
      slots_(graph.slot_of.size(), nullptr),
      runs_(graph.reads.size()) {
  for (size_t i = 0; i < waiting_.size(); ++i) {
    waiting_[i].store(graph.reads[i], std::memory_order_relaxed);
  }
}

FakePropagator::~FakePropagator() {
  for (size_t node = 0; node < waiting_.size(); ++node) Take(int32_t(node));
}

void FakePropagator::ActivateRoots(std::vector<int32_t>* ready) const {
  for (size_t node = 0; node < waiting_.size(); ++node) {
    if (graph_.reads[node] == 0) ready->push_back(int32_t(node));
  }
}

uint64_t FakePropagator::Take(int32_t node) {
  uint64_t sum = node;
  for (int32_t i = 0; i < graph_.reads[node]; ++i) {
    Value*& value = slots_[graph_.first_slot[node] + i];
    if (value == nullptr) continue;
    sum += value->sum;
    if (value->readers.fetch_sub(1, std::memory_order_acq_rel) == 1) BlockCache::Get().Free(value);
    value = nullptr;
  }
  return sum;
}

void FakePropagator::Drop(int32_t node) {
  CHECK_EQ(runs_[node].fetch_add(1), 0);
  Take(node);
}

void FakePropagator::Propagate(int32_t node, std::vector<int32_t>* ready) {
  CHECK_EQ(runs_[node].fetch_add(1), 0);
  const uint64_t sum = Take(node);
  CHECK_EQ(sum, graph_.sums[node]);
  const int32_t* begin = graph_.dag.begin(node);
  const int32_t* end = graph_.dag.end(node);
  if (begin == end) return;
  auto* value = new (BlockCache::Get().Allocate(sizeof(Value))) Value{{int32_t(end - begin)}, sum};
  for (const int32_t* to = begin; to != end; ++to) {
    slots_[graph_.slot_of[graph_.first_edge[node] + (to - begin)]] = value;
  }
  // After all slots: the value is gone once those behind have run.
  for (const int32_t* to = begin; to != end; ++to) {
    if (waiting_[*to].fetch_sub(1, std::memory_order_acq_rel) == 1) ready->push_back(*to);
  }
}

bool FakePropagator::HasRunAll() const {
  return std::all_of(runs_.begin(), runs_.end(), [](const auto& runs) { return runs == 1; });
}

}  // namespace workbench::test
