#ifndef WORKBENCH_TEST_EXECUTOR_STEP_FAKE_GRAPH_H_
#define WORKBENCH_TEST_EXECUTOR_STEP_FAKE_GRAPH_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "executor/scheduling/cost_model.h"
#include "executor/scheduling/dag.h"

namespace workbench::test {

// The nodes of an executor, without kernels: a node adds up what it reads, and its own number.
struct FakeGraph {
  enum class Kind : uint8_t { kHere, kElsewhere, kWaits };  // Where a node ends, and if by itself.

  FakeGraph(int32_t nodes, unsigned seed);

  Dag dag;
  std::vector<int32_t> reads;       // How many values.
  std::vector<int32_t> first_slot;  // Of what it reads; a slot for each edge.
  std::vector<int32_t> slot_of;     // Of each edge, in the order of the dag.
  std::vector<int32_t> first_edge;  // In slot_of.
  std::vector<Kind> kind;
  std::vector<uint64_t> sums;  // What the nodes give, computed one after the other.
  std::unique_ptr<CostModel> model;
};

// Which nodes are ready, and the values on their way, in blocks of the cache. The values are read
// and written without a lock: whatever hands nodes from thread to thread has to order that.
class FakePropagator {
 public:
  explicit FakePropagator(const FakeGraph& graph);
  ~FakePropagator();

  void ActivateRoots(std::vector<int32_t>* ready) const;
  // Takes what the node reads, and gives what it makes to those behind it.
  void Propagate(int32_t node, std::vector<int32_t>* ready);
  // The node failed: drops what it reads.
  void Drop(int32_t node);
  bool HasRunAll() const;

 private:
  struct Value {
    std::atomic<int32_t> readers;
    uint64_t sum;
  };
  uint64_t Take(int32_t node);

  const FakeGraph& graph_;
  std::vector<std::atomic<int32_t>> waiting_;
  std::vector<Value*> slots_;
  std::vector<std::atomic<int32_t>> runs_;
};

}  // namespace workbench::test

#endif  // WORKBENCH_TEST_EXECUTOR_STEP_FAKE_GRAPH_H_
