#ifndef WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_STEP_H_
#define WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_STEP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "executor/policies/propagated/thread_state.h"
#include "executor/scheduling/admission.h"
#include "executor/scheduling/cost_model.h"
#include "executor/scheduling/workers.h"
#include "executor/step/executor_state.h"
#include "executor/step/step_frame.h"
#include "tensorflow/core/common_runtime/executor.h"

namespace workbench {

// One step by TensorFlow's `Propagator`; see propagated_step.h. The definitions are in the _inl
// headers, which propagated_step.cc includes: run_node_inl.h runs nodes, step_inl.h begins and ends
// the step, and each policy has its own.
template <class Propagator>
class PropagatedStep {
 public:
  using Args = tensorflow::Executor::Args;
  using DoneCallback = tensorflow::Executor::DoneCallback;

  // `has_caller`: the calling thread waits for the step's end.
  PropagatedStep(const ExecutorState& executor, const Args& args, bool has_caller);

  absl::Status Run(Admission* admission);
  static void RunAsync(const ExecutorState& executor, const Args& args, DoneCallback done);

 private:
  using Entry = tensorflow::Entry;
  using EntryVector = tensorflow::EntryVector;
  using OpKernelContext = tensorflow::OpKernelContext;
  using TaggedNode = typename Propagator::TaggedNode;
  using TaggedNodeSeq = typename Propagator::TaggedNodeSeq;
  using Thread = ThreadState<Propagator>;
  using Item = typename Thread::Item;
  using Queue = Workers<Item>;
  using ReadyItems = absl::InlinedVector<typename Queue::Ready, 16>;
  using Learned = CostModel::Learned;

  struct AsyncNode;

  // step_inl.h
  absl::Status Begin(TaggedNodeSeq* roots);
  void Finish();

  // run_node_inl.h. True: the step has come to its end.
  bool RunNode(const Item& item, Thread* thread);
  bool EndNode(const TaggedNode& node, const absl::Status& status, Entry* inputs,
               EntryVector* outputs, TaggedNodeSeq* ready, Thread* thread);
  absl::Status RunKernel(const Item& item, Thread* thread, Entry* inputs, bool* launched);
  void SetParams(const Item& item, Thread* thread) const;
  absl::Status RunNothing(const Item& item, Thread* thread);
  absl::Status Compute(const Item& item, Thread* thread);
  absl::Status ComputeUnobserved(const Item& item, Thread* thread);
  absl::Status ComputeObserved(const Item& item, Thread* thread);
  void EndAsync(AsyncNode* async);
  // When nodes get ready: the end of the kernel before, if this thread ran one.
  uint64_t Now(const Thread* thread) const {
    if (!observed_) return 0;
    return thread != nullptr && thread->ended != 0 ? thread->ended : Ticks();
  }

  static void SortById(TaggedNodeSeq* ready);
  // Nodes that got ready. `thread` is null on a thread that runs no nodes of this step.
  void Schedule(TaggedNodeSeq* ready, Thread* thread);

  // normal_policy_inl.h
  void ScheduleNormally(const TaggedNodeSeq& ready, Thread* thread);
  void Dispatch(const TaggedNode& node, uint64_t scheduled);

  // inline_policy_inl.h
  void ScheduleInline(const TaggedNodeSeq& ready, Thread* thread);
  // `args` are the caller's: the step, and its copy of them, may be gone before the runner returns.
  void StartInline(TaggedNodeSeq roots, const Args& args);

  // cost_model_policy_inl.h
  void SetUpByCost();
  void ScheduleByCost(TaggedNodeSeq* ready, Thread* thread);
  void StartByCost(TaggedNodeSeq* roots);
  void StartNextBatch(Thread* thread);
  void ReturnToQueue(Thread* thread, size_t nodes);
  void SortByPriority(TaggedNodeSeq* ready) const;
  void RecordInTrial(const absl::Status& status) const;
  int64_t CostOf(const TaggedNode& node) const {
    return learned_ == nullptr || node.get_is_dead()
               ? 0
               : learned_->average_ns[node.get_node_item().node_id];
  }
  int64_t PriorityOf(const TaggedNode& node) const {
    return learned_ == nullptr ? 0 : learned_->to_sink_ns[node.get_node_item().node_id];
  }

  // queue_inl.h: the queue of inline and of the cost model.
  bool has_queue() const { return queue_ != nullptr; }
  // Adds all nodes; `left` as for Workers::Add.
  void AddToQueue(TaggedNodeSeq* ready, int64_t left);
  void Send(int workers);
  void Work(bool as_caller);
  void RunTaken(Thread* thread);

  const ExecutorState& executor_;
  std::optional<Args> own_args_;  // If the caller's may go before the step ends.
  const Args& args_;
  std::optional<StepFrame> frame_;
  bool observed_ = false;
  std::optional<Propagator> propagator_;
  OpKernelContext::Params params_;
  // Nodes that are ready, run, or wait for their kernels. The step ends with the last of them.
  std::atomic<int64_t> outstanding_{0};
  DoneCallback done_;
  Admission* admission_ = nullptr;

  const bool has_caller_;
  const bool inline_;
  int64_t batch_ns_ = std::numeric_limits<int64_t>::max();
  size_t batch_ops_ = 1;
  std::shared_ptr<const Learned> learned_;  // Null: this step is not scheduled by cost.
  std::shared_ptr<const Learned> tried_;    // Null: no trial times this step.
  OrderTrial::Order tried_order_ = OrderTrial::Order::kByCost;
  uint64_t began_ = 0;            // Ticks, of a step that a trial times.
  std::shared_ptr<Queue> queue_;  // Null: scheduled normally.
  std::atomic<int32_t> batches_{0};
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_STEP_H_
