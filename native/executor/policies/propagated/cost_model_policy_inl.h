#ifndef WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_COST_MODEL_POLICY_INL_H_
#define WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_COST_MODEL_POLICY_INL_H_

// The cost-model policy, once costs are known: nodes by their longest path to the sink. A thread
// goes on with the short nodes that it made ready, a batch at a time; longer ones go to the common
// queue.

#include <algorithm>
#include <chrono>
#include <utility>

#include "executor/policies/propagated/step.h"
#include "tensorflow/core/platform/cpu_info.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace workbench {

// A thread that must be woken comes too late for fewer batches.
inline constexpr int64_t kMinSharedBatches = 4;

// About what it costs to wake a sleeping thread.
inline constexpr std::chrono::microseconds kSpin{50};

inline int MaxThreads(const tensorflow::Executor::Args& args) {
  const int wanted =
      args.session_config == nullptr ? 0 : args.session_config->inter_op_parallelism_threads();
  return wanted > 0 ? wanted : tensorflow::port::MaxParallelism();
}

// Without costs, or where the trial has chosen the order of stock TensorFlow, the step stays
// normal.
template <class Propagator>
void PropagatedStep<Propagator>::SetUpByCost() {
  std::shared_ptr<const Learned> learned = executor_.cost_model()->learned();
  if (learned == nullptr) return;
  const OrderTrial::Step trial = learned->trial.Next();
  if (trial.timed) {
    tried_ = learned;
    tried_order_ = trial.order;
    began_ = Ticks();
  }
  if (trial.order != OrderTrial::Order::kByCost) return;
  learned_ = std::move(learned);
  batch_ns_ = executor_.cost_model()->settings().batch_ns;
  batch_ops_ = executor_.cost_model()->settings().batch_ops;
  queue_ = std::make_shared<Queue>(MaxThreads(args_), has_caller_,
                                   typename Queue::Settings{batch_ns_, kSpin});
}

template <class Propagator>
void PropagatedStep<Propagator>::RecordInTrial(const absl::Status& status) const {
  if (tried_ != nullptr && status.ok()) tried_->trial.Record(tried_order_, Ticks() - began_);
}

template <class Propagator>
void PropagatedStep<Propagator>::StartByCost(TaggedNodeSeq* roots) {
  // Counts as a node until all roots are in the queue: the step must not end before.
  outstanding_.fetch_add(1);
  const std::shared_ptr<Queue> queue = queue_;
  AddToQueue(roots, Queue::kNotAWorker);
  if (outstanding_.fetch_sub(1) == 1 && queue->End()) Finish();
}

template <class Propagator>
void PropagatedStep<Propagator>::ScheduleByCost(TaggedNodeSeq* ready, Thread* thread) {
  const uint64_t now = Now(thread);
  SortByPriority(ready);
  ReadyItems common;
  for (const TaggedNode& node : *ready) {
    const int64_t cost = CostOf(node);
    if (cost <= batch_ns_) {
      thread->Push({node, now}, cost);
    } else {
      common.push_back({PriorityOf(node), cost, {node, now}});
    }
  }
  if (common.empty()) return;
  // The node that this thread would take next anyway, with its inputs in the cache, skips the
  // queue.
  const typename Queue::Ready& first = common.front();
  const bool keeps_first = thread->empty() && !queue_->HasHigher(first.priority);
  if (keeps_first) thread->Push(first.item, first.cost);
  if (common.size() > size_t{keeps_first}) {
    Send(queue_->Add(common.data() + keeps_first, common.data() + common.size(), thread->cost));
  }
}

// Between two batches: gives way to a node with a longer path, or shares its nodes with a thread
// that has none.
template <class Propagator>
void PropagatedStep<Propagator>::StartNextBatch(Thread* thread) {
  thread->batch = batches_.fetch_add(1, std::memory_order_relaxed);
  if (queue_->HasHigher(PriorityOf(thread->first().node))) {
    ReturnToQueue(thread, thread->pending());
  } else if (thread->cost > kMinSharedBatches * batch_ns_ && queue_->HasSpareWorker()) {
    ReturnToQueue(thread, thread->pending() / 2);
  }
}

template <class Propagator>
void PropagatedStep<Propagator>::ReturnToQueue(Thread* thread, size_t nodes) {
  ReadyItems common;
  for (; nodes > 0; --nodes) {
    const int64_t cost = CostOf(thread->first().node);
    const Item& item = thread->Pop(cost);
    common.push_back({PriorityOf(item.node), cost, item});
  }
  Send(queue_->Add(common.data(), common.data() + common.size(), thread->cost));
}

template <class Propagator>
void PropagatedStep<Propagator>::SortByPriority(TaggedNodeSeq* ready) const {
  if (learned_ == nullptr || ready->size() < 2) return;
  std::sort(ready->begin(), ready->end(), [this](const TaggedNode& a, const TaggedNode& b) {
    return PriorityOf(a) > PriorityOf(b);
  });
}

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_COST_MODEL_POLICY_INL_H_
