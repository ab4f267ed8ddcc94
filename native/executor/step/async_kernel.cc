#include "executor/step/async_kernel.h"

#include "threading/float_state.h"

namespace workbench {

using tensorflow::NodeItem;
using tensorflow::OpKernelContext;

AsyncKernel::AsyncKernel(const StepFrame& frame, const NodeItem& item,
                         const OpKernelContext::Params& step_params, uint64_t scheduled)
    : params_(step_params),
      frame_(frame),
      item_(item),
      context_(OwnParams(scheduled), item.num_outputs) {}

// Everything that the constructor of a context reads.
OpKernelContext::Params* AsyncKernel::OwnParams(uint64_t scheduled) {
  params_.eigen_gpu_device = nullptr;
  params_.track_allocations = false;
  // With kernels inline the function would hold this thread, which has to run what it waits for.
  if (frame_.executor().CallsWaitingFunction(item_.node_id)) params_.run_all_kernels_inline = false;
  if (frame_.observers().any()) {
    observed_.emplace(frame_, item_, scheduled);
    params_.track_allocations = observed_->TracksAllocations();
  }
  return &params_;
}

void AsyncKernel::Start() {
  const bool observed = observed_.has_value();
  if (observed) {
    observed_->BeginRegion(context_);
    observed_->Begin();
  }
  if (item_.kernel_is_async) {
    frame_.device()->ComputeAsync(item_.kernel->AsAsync(), &context_, [this] { CalledBack(); });
  } else {
    frame_.args().runner([this] {
      {
        const TensorFlowFloatState float_state;
        frame_.device()->Compute(item_.kernel, &context_);
      }
      CalledBack();
    });
  }
  if (observed) {
    observed_->EndRegion();
    launched_ = Ticks() - observed_->start();
  }
  if (second_.exchange(true)) Ended(/*here=*/true);
}

void AsyncKernel::CalledBack() {
  if (observed_) ended_ = Ticks();
  if (second_.exchange(true)) Ended(/*here=*/false);
}

tensorflow::NodeExecStatsInterface* AsyncKernel::EndObservation() {
  if (!observed_) return nullptr;
  const bool waits = frame_.executor().Waits(item_.node_id);
  observed_->End(ended_, waits ? launched_ : ended_ - observed_->start(),
                 frame_.TracedBytes(&context_));
  return observed_->stats();
}

void AsyncKernel::OutputsObserved() {
  if (observed_) observed_->Done(&context_);
}

}  // namespace workbench
