#ifndef WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_NORMAL_POLICY_INL_H_
#define WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_NORMAL_POLICY_INL_H_

// The normal policy, as stock TensorFlow's: a thread goes on with the cheap nodes that it made
// ready and with one expensive node; the other expensive nodes go to the pool.

#include "executor/policies/propagated/step.h"
#include "threading/float_state.h"

namespace workbench {

template <class Propagator>
void PropagatedStep<Propagator>::ScheduleNormally(const TaggedNodeSeq& ready, Thread* thread) {
  const uint64_t now = Now(thread);
  if (thread == nullptr) {
    for (const TaggedNode& node : ready) Dispatch(node, now);
    return;
  }
  if (ready.size() == 1 && thread->empty()) {  // Mostly.
    thread->Push({ready.front(), now}, 0);
    return;
  }
  const TaggedNode* expensive = nullptr;
  for (const TaggedNode& node : ready) {
    if (node.get_is_dead() ||
        !executor_.kernel_cost().IsExpensive(node.get_node_item().node_id)) {
      thread->Push({node, now}, 0);
      continue;
    }
    if (expensive != nullptr) Dispatch(*expensive, now);
    expensive = &node;
  }
  if (expensive == nullptr) return;
  if (thread->empty()) {
    thread->Push({*expensive, now}, 0);
  } else {
    Dispatch(*expensive, now);
  }
}

template <class Propagator>
void PropagatedStep<Propagator>::Dispatch(const TaggedNode& node, uint64_t scheduled) {
  args_.runner([this, item = Item{node, scheduled}] {
    const TensorFlowFloatState float_state;
    Thread thread(params_);
    thread.Push(item, 0);
    while (!thread.empty()) {
      const Item next = thread.Pop(0);
      if (RunNode(next, &thread)) {
        Finish();
        return;
      }
    }
  });
}

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_NORMAL_POLICY_INL_H_
