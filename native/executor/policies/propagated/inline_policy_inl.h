#ifndef WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_INLINE_POLICY_INL_H_
#define WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_INLINE_POLICY_INL_H_

// The inline policy: a queue with one worker, which goes on with every node that it made ready.
// Only asynchronous kernels that end on another thread add to the queue.

#include <utility>

#include "executor/policies/propagated/step.h"

namespace workbench {

template <class Propagator>
void PropagatedStep<Propagator>::ScheduleInline(const TaggedNodeSeq& ready, Thread* thread) {
  const uint64_t now = Now(thread);
  for (const TaggedNode& node : ready) thread->Push({node, now}, 0);
}

template <class Propagator>
void PropagatedStep<Propagator>::StartInline(TaggedNodeSeq roots, const Args& args) {
  auto work = [this, roots = std::move(roots)]() mutable {
    queue_->Join();
    AddToQueue(&roots, /*left=*/0);
    Work(/*as_caller=*/false);
  };
  // A caller that did not ask for its own thread may have to cancel the step, or to start another
  // step that this one waits for.
  if (args.run_all_kernels_inline) {
    work();
  } else {
    args.runner(std::move(work));
  }
}

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_INLINE_POLICY_INL_H_
