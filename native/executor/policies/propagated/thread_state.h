#ifndef WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_THREAD_STATE_H_
#define WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_THREAD_STATE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "tensorflow/core/common_runtime/entry.h"
#include "tensorflow/core/common_runtime/graph_view.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace workbench {

// What one thread holds while it runs nodes of a step: the nodes that it has taken and not yet run,
// and the memory that every node needs.
template <class Propagator>
struct ThreadState {
  struct Item {
    typename Propagator::TaggedNode node;
    uint64_t scheduled;  // When the node got ready, in ticks; 0 without an observer.
  };

  explicit ThreadState(const tensorflow::OpKernelContext::Params& step_params)
      : params(step_params) {
    params.eigen_gpu_device = nullptr;
    items.reserve(16);  // More than are mostly ready at one time.
  }

  bool empty() const { return next == items.size(); }
  size_t pending() const { return items.size() - next; }
  const Item& first() const { return items[next]; }

  void Push(const Item& item, int64_t item_cost) {
    if (empty()) {
      items.clear();
      next = 0;
      cost = 0;
    } else if (next >= kForget && next >= pending()) {
      items.erase(items.begin(), items.begin() + next);
      next = 0;
    }
    items.push_back(item);
    cost += item_cost;
  }
  const Item& Pop(int64_t item_cost) {
    cost -= item_cost;
    return items[next++];
  }

  // Makes room for a node's values. The room never shrinks: to construct and destroy it for each
  // node would cost as much as everything else that is done for a small one.
  void MakeRoom(const tensorflow::NodeItem& node) {
    if (TF_PREDICT_FALSE(inputs.size() < size_t(node.num_inputs))) {
      inputs.resize(node.num_inputs);
      input_attributes.resize(node.num_inputs);
    }
    if (TF_PREDICT_FALSE(outputs.size() < size_t(node.num_outputs))) {
      outputs.resize(node.num_outputs);
    }
  }

  static constexpr size_t kForget = 1024;
  std::vector<Item> items;
  size_t next = 0;    // Items before it have run.
  int64_t cost = 0;   // Of the pending items.
  int32_t batch = 0;  // In which they run.
  tensorflow::OpKernelContext::Params params;
  absl::InlinedVector<tensorflow::TensorValue, 8> inputs;
  absl::InlinedVector<tensorflow::AllocatorAttributes, 8> input_attributes;
  tensorflow::EntryVector outputs;  // Without values between two nodes.
  typename Propagator::TaggedNodeSeq ready;
  uint32_t runs = 0;   // Nodes that were counted to measure some of them.
  uint64_t ended = 0;  // When the last kernel ended, in ticks; 0 without an observer.
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_THREAD_STATE_H_
