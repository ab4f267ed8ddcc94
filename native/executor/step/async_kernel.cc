#include "executor/step/async_kernel.h"

namespace workbench {

using tensorflow::NodeItem;
using tensorflow::OpKernelContext;

AsyncKernel::AsyncKernel(const StepFrame& frame, const NodeItem& item,
                         const OpKernelContext::Params& step_params, uint64_t scheduled)
    : params_(step_params),
      frame_(frame),
      item_(item),
      context_(OwnParams(scheduled), item.num_outputs) {}

// All that a context looks at when it is made.
OpKernelContext::Params* AsyncKernel::OwnParams(uint64_t scheduled) {
  params_.eigen_gpu_device = nullptr;
  params_.track_allocations = false;
  // Told that kernels run inline, it would hold this thread, where what it waits for has to run.
  if (frame_.shared().CallsWhatWaits(item_.node_id)) params_.run_all_kernels_inline = false;
  if (frame_.watch().any()) {
    watched_.emplace(frame_, item_, scheduled);
    params_.track_allocations = watched_->TracksAllocations();
  }
  return &params_;
}

void AsyncKernel::Start() {
  const bool watched = watched_.has_value();
  if (watched) {
    watched_->BeginRegion(context_);
    watched_->Begin();
  }
  if (item_.kernel_is_async) {
    frame_.device()->ComputeAsync(item_.kernel->AsAsync(), &context_, [this] { CalledBack(); });
  } else {
    frame_.args().runner([this] {
      frame_.device()->Compute(item_.kernel, &context_);
      CalledBack();
    });
  }
  if (watched) {
    watched_->EndRegion();
    launched_ = Ticks() - watched_->start();
  }
  if (second_.exchange(true)) Ended(/*here=*/true);
}

void AsyncKernel::CalledBack() {
  if (watched_) ended_ = Ticks();
  if (second_.exchange(true)) Ended(/*here=*/false);
}

tensorflow::NodeExecStatsInterface* AsyncKernel::EndWatch() {
  if (!watched_) return nullptr;
  const bool waits = frame_.shared().Waits(item_.node_id);
  watched_->End(ended_, waits ? launched_ : ended_ - watched_->start());
  return watched_->stats();
}

void AsyncKernel::DoneWatch() {
  if (watched_) watched_->Done(&context_);
}

}  // namespace workbench
