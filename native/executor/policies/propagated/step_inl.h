#ifndef WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_STEP_INL_H_
#define WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_STEP_INL_H_

// How a step begins and ends.

#include <memory>
#include <optional>
#include <utility>

#include "absl/synchronization/notification.h"
#include "executor/policies/propagated/step.h"

namespace workbench {

template <class Propagator>
PropagatedStep<Propagator>::PropagatedStep(const ExecutorState& executor, const Args& args,
                                           bool has_caller)
    : executor_(executor),
      own_args_(has_caller ? std::optional<Args>() : args),
      args_(has_caller ? args : *own_args_),
      has_caller_(has_caller),
      inline_(executor.policy() == ExecutorPolicy::kInline || args.run_all_kernels_inline) {}

template <class Propagator>
absl::Status PropagatedStep<Propagator>::Begin(TaggedNodeSeq* roots) {
  frame_.emplace(executor_, args_);
  TF_RETURN_IF_ERROR(frame_->Begin());
  frame_->Fill(&params_);
  observed_ = frame_->observers().any();
  propagator_.emplace(executor_.immutable_state(), args_.step_id, /*vlog=*/false);
  if (inline_) {
    queue_ = std::make_shared<Queue>(1, has_caller_);
  } else if (executor_.cost_model() != nullptr && !frame_->observers().learning &&
             !executor_.keeps_order()) {
    SetUpByCost();
  }
  propagator_->ActivateRoots(executor_.immutable_state().root_nodes(), roots);
  outstanding_.store(roots->size(), std::memory_order_relaxed);
  return absl::OkStatus();
}

template <class Propagator>
absl::Status PropagatedStep<Propagator>::Run(Admission* admission) {
  admission_ = admission;
  TaggedNodeSeq roots;
  absl::Status begun = Begin(&roots);
  if (!begun.ok()) return begun;
  if (!roots.empty()) {
    if (has_queue()) {
      AddToQueue(&roots, /*left=*/0);
      Work(/*as_caller=*/true);
    } else {
      absl::Notification ended;
      done_ = [&ended](const absl::Status&) { ended.Notify(); };
      ScheduleNormally(roots, nullptr);
      ended.WaitForNotification();
    }
  }
  const absl::Status status = frame_->EndHere();
  RecordInTrial(status);
  return status;
}

template <class Propagator>
void PropagatedStep<Propagator>::RunAsync(const ExecutorState& executor, const Args& args,
                                          DoneCallback done) {
  auto* step = new PropagatedStep(executor, args, /*has_caller=*/false);
  step->done_ = std::move(done);
  TaggedNodeSeq roots;
  absl::Status begun = step->Begin(&roots);
  if (!begun.ok()) step->frame_->Fail(begun);
  if (!begun.ok() || roots.empty()) {
    step->Finish();
  } else if (!step->has_queue()) {
    step->ScheduleNormally(roots, nullptr);
  } else if (step->inline_) {
    step->StartInline(std::move(roots), args);
  } else {
    step->StartByCost(&roots);
  }
}

template <class Propagator>
void PropagatedStep<Propagator>::Finish() {
  if (has_caller_) {
    // Run waits for this, and ends the frame itself.
    const DoneCallback done = std::move(done_);
    done(absl::OkStatus());
    return;
  }
  frame_->EndLater([this](const absl::Status& status) {
    RecordInTrial(status);
    const DoneCallback done = std::move(done_);
    const Args::Runner runner = args_.runner;
    const bool here = inline_;
    delete this;
    if (here) {
      done(status);
    } else {
      runner([done, status] { done(status); });
    }
  });
}

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_STEP_INL_H_
