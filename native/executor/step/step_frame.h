#ifndef WORKBENCH_EXECUTOR_STEP_STEP_FRAME_H_
#define WORKBENCH_EXECUTOR_STEP_STEP_FRAME_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "executor/step/executor_state.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/step_stats_collector.h"
#include "tensorflow/core/framework/device.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/profiler/lib/annotated_traceme.h"
#include "tensorflow/core/profiler/lib/traceme.h"
#include "tensorflow/core/util/tensor_slice_reader_cache.h"
#include "tracing/op_events.h"

namespace workbench {

// Who looks at the nodes of a step; asked once, when it begins.
struct Watch {
  bool events = false;    // Workbench's tracer.
  bool profiler = false;  // TensorFlow's.
  bool learning = false;  // The cost model.
  tensorflow::StepStatsCollectorInterface* stats = nullptr;  // RunMetadata.
  uint32_t run = 0;
  uint32_t first_node = 0;

  bool any() const { return events || profiler || learning || stats != nullptr; }
  // TensorFlow's own: these want more than two readings of a clock.
  bool by_tensorflow() const { return profiler || stats != nullptr; }
};

// One run of an executor as all its nodes see it: what the caller gave, whether something failed,
// and who watches.
class StepFrame {
 public:
  // Both must outlive it.
  StepFrame(const ExecutorShared& shared, const tensorflow::Executor::Args& args);
  ~StepFrame();

  // Ready to run nodes; an error of the device otherwise.
  absl::Status Begin();
  // Sets all that is the same for every kernel of the step.
  void Fill(tensorflow::OpKernelContext::Params* params);

  const ExecutorShared& shared() const { return shared_; }
  const tensorflow::Executor::Args& args() const { return args_; }
  tensorflow::Device* device() const { return device_; }
  const Watch& watch() const { return watch_; }

  // Tells who watches, other than TensorFlow, that a node ran. `worked`: ticks that count as work.
  void Note(const tensorflow::NodeItem& item, uint64_t scheduled, uint64_t start, uint64_t end,
            uint64_t worked) const {
    if (watch_.events) {
      OpEvents::Add({scheduled, start, end, watch_.first_node + item.node_id, watch_.run});
    }
    if (watch_.learning) shared_.cost_model()->Add(item.node_id, worked);
  }

  // Notes the step's first error and stops everything that waits for something.
  void Fail(const absl::Status& status);
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  absl::Status status() const;

  // Ends the step: waits for what kernels left running on the device.
  absl::Status EndHere();
  // The same without waiting; `done` may be called before this returns. The frame may be gone then.
  void EndLater(std::function<void(const absl::Status&)> done);

 private:
  void DeferOp();
  void EndDeferredOp();
  // Calls what waits for the last op that was deferred, at once if there is none.
  void WhenNoneDeferred(std::function<void()> then);
  absl::Status DeviceStatus(absl::Status status);

  const ExecutorShared& shared_;
  const tensorflow::Executor::Args& args_;
  std::unique_ptr<tensorflow::Device> own_device_;  // Where the caller gave an intra-op pool.
  tensorflow::Device* device_;
  tensorflow::DeviceContext* device_context_ = nullptr;
  std::optional<tensorflow::checkpoint::TensorSliceReaderCacheWrapper> slices_;
  Watch watch_;

  std::atomic<bool> failed_{false};
  mutable std::mutex mu_;  // Guards all below.
  absl::Status status_;
  int deferred_ = 0;
  std::function<void()> when_none_deferred_;
};

// One node while it runs, as those see it who watch the step. Begin and End stand around the
// kernel's call, Done after its outputs.
class WatchedNode {
 public:
  WatchedNode(const StepFrame& frame, const tensorflow::NodeItem& item, uint64_t scheduled);

  bool TracksAllocations() const { return stats_ != nullptr && stats_->TrackAllocations(); }
  tensorflow::NodeExecStatsInterface* stats() const { return stats_; }

  // Opens the profiler's region; it lasts until EndRegion, on one thread.
  void BeginRegion(const tensorflow::OpKernelContext& context);
  void EndRegion() { region_.reset(); }

  void Begin();
  // `worked`: ticks that count as work; an asynchronous kernel's waiting is none.
  void End(uint64_t now, uint64_t worked);
  void Done(tensorflow::OpKernelContext* context);
  // All of it, of a node that is run by doing nothing.
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

#endif  // WORKBENCH_EXECUTOR_STEP_STEP_FRAME_H_
