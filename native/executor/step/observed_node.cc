#include "executor/step/observed_node.h"

#include "tensorflow/core/platform/env.h"

namespace workbench {

using tensorflow::OpKernelContext;

ObservedNode::ObservedNode(const StepFrame& frame, const tensorflow::NodeItem& item,
                         uint64_t scheduled)
    : frame_(frame), item_(item), scheduled_(scheduled) {
  if (TF_PREDICT_FALSE(frame.observers().stats != nullptr)) {
    stats_ = frame.observers().stats->CreateNodeExecStats(&item.kernel->def());
    if (stats_ != nullptr) {
      const double waited_ns = double(int64_t(Ticks() - scheduled)) * NsPerTick();
      stats_->SetScheduled(tensorflow::EnvTime::NowNanos() - int64_t(waited_ns));
      stats_->RecordExecutorStarted();
    }
  }
}

void ObservedNode::BeginRegion(const OpKernelContext& context) {
  if (!frame_.observers().profiler) return;
  region_.emplace(
      [&] { return item_.kernel->TraceString(context, tsl::profiler::TfOpDetailsEnabled()); },
      kProfilerLevel);
}

void ObservedNode::Begin() {
  if (stats_ != nullptr) stats_->RecordComputeStarted();
  start_ = Ticks();
}

void ObservedNode::End(uint64_t now, uint64_t worked, OutputBytes bytes) {
  frame_.Note(item_, scheduled_, start_, now, worked, bytes);
  if (stats_ != nullptr) stats_->RecordComputeEnded();
}

void ObservedNode::Done(OpKernelContext* context) {
  if (TF_PREDICT_TRUE(stats_ == nullptr)) return;
  if (context != nullptr) stats_->SetMemory(context);
  stats_->RecordExecutorEnded();
  stats_->Done(frame_.device()->name());
  stats_ = nullptr;
}

void ObservedNode::RunNothing() {
  Begin();
  End(start_, 0);
  if (stats_ != nullptr && item_.const_tensor != nullptr) stats_->SetOutput(0, item_.const_tensor);
  Done(nullptr);
}

}  // namespace workbench
