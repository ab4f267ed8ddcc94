#ifndef WORKBENCH_EXECUTOR_STEP_OBSERVED_NODE_H_
#define WORKBENCH_EXECUTOR_STEP_OBSERVED_NODE_H_

#include <cstdint>
#include <optional>

#include "executor/step/step_frame.h"
#include "tensorflow/core/profiler/lib/annotated_traceme.h"

namespace workbench {

// Reports one run of a node to the observers of its step. Begin and End stand around the kernel's
// call, Done after its outputs.
class ObservedNode {
 public:
  // TensorFlow's own executor leaves ops that it has learned to be cheap out of a profile. This one
  // reports all ops at the level at which a profile is taken by default.
  static constexpr int kProfilerLevel = 1;

  // `scheduled`: when the node got ready, in ticks.
  ObservedNode(const StepFrame& frame, const tensorflow::NodeItem& item, uint64_t scheduled);

  bool TracksAllocations() const { return stats_ != nullptr && stats_->TrackAllocations(); }
  // Null without step stats.
  tensorflow::NodeExecStatsInterface* stats() const { return stats_; }

  // Opens the profiler's region; it lasts until EndRegion, on one thread.
  void BeginRegion(const tensorflow::OpKernelContext& context);
  void EndRegion() { region_.reset(); }

  void Begin();
  // `worked`: ticks that count as work. Time that an asynchronous kernel only waits does not.
  // `bytes`: of the kernel's outputs.
  void End(uint64_t now, uint64_t worked, OutputBytes bytes = {});
  // `context` may be null, if the kernel never ran.
  void Done(tensorflow::OpKernelContext* context);
  // Reports a node that has nothing to run, a NoOp or a constant.
  void RunNothing();

  uint64_t start() const { return start_; }

 private:
  const StepFrame& frame_;
  const tensorflow::NodeItem& item_;
  const uint64_t scheduled_;
  uint64_t start_ = 0;
  tensorflow::NodeExecStatsInterface* stats_ = nullptr;
  std::optional<tensorflow::profiler::AnnotatedTraceMe> region_;
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_STEP_OBSERVED_NODE_H_
