#ifndef WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_QUEUE_INL_H_
#define WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_QUEUE_INL_H_

// The queue of ready nodes, and the threads that work on it, of the inline and cost-model policies.

#include <memory>

#include "executor/policies/propagated/step.h"
#include "threading/crew.h"
#include "threading/float_state.h"

namespace workbench {

template <class Propagator>
void PropagatedStep<Propagator>::AddToQueue(TaggedNodeSeq* ready, int64_t left) {
  const uint64_t now = Now(nullptr);
  SortByPriority(ready);
  ReadyItems items;
  for (const TaggedNode& node : *ready) {
    items.push_back({PriorityOf(node), CostOf(node), {node, now}});
  }
  Send(queue_->Add(items.data(), items.data() + items.size(), left));
}

template <class Propagator>
void PropagatedStep<Propagator>::Send(int workers) {
  for (; workers > 0; --workers) {
    // When the pool runs this the step may be gone; the queue is not.
    args_.runner([this, queue = queue_] {
      if (queue->Enter()) Work(/*as_caller=*/false);
    });
  }
}

template <class Propagator>
void PropagatedStep<Propagator>::Work(bool as_caller) {
  const TensorFlowFloatState float_state;
  const std::shared_ptr<Queue> queue = queue_;
  Thread thread(params_);
  while (true) {
    thread.items.clear();
    thread.next = 0;
    if (as_caller) {
      if (!queue->TakeAsCaller(batch_ns_, batch_ops_, &thread.items, admission_)) return;
      if (admission_ != nullptr) admission_->Resume();
    } else {
      const auto took = queue->Take(batch_ns_, batch_ops_, &thread.items);
      if (took == Queue::Took::kNothing) return;
      if (took == Queue::Took::kLast) break;
    }
    thread.cost = 0;
    for (const Item& item : thread.items) thread.cost += CostOf(item.node);
    thread.batch = batches_.fetch_add(1, std::memory_order_relaxed);
    RunTaken(&thread);
  }
  Finish();
}

template <class Propagator>
void PropagatedStep<Propagator>::RunTaken(Thread* thread) {
  const AtWork at_work;
  int64_t spent = 0;  // Of this batch.
  size_t run = 0;
  while (!thread->empty()) {
    const int64_t cost = CostOf(thread->first().node);
    const Item item = thread->Pop(cost);
    if (learned_ != nullptr) {
      executor_.cost_model()->Scheduled(item.node.get_node_item().node_id, thread->batch);
      spent += cost;
      ++run;
    }
    if (RunNode(item, thread)) {
      queue_->End();
      return;
    }
    if ((spent > batch_ns_ || run >= batch_ops_) && !thread->empty()) {
      spent = 0;
      run = 0;
      StartNextBatch(thread);
    }
  }
}

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_QUEUE_INL_H_
