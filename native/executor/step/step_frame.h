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
#include "executor/step/output_bytes.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/step_stats_collector.h"
#include "tensorflow/core/framework/device.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow/core/profiler/lib/traceme.h"
#include "tensorflow/core/util/tensor_slice_reader_cache.h"
#include "tracing/op_events.h"

namespace workbench {

// What observes the nodes of a step; looked up once, when the step begins.
struct Observers {
  bool events = false;    // Workbench's tracer.
  bool profiler = false;  // TensorFlow's.
  bool learning = false;  // The cost model.
  tensorflow::StepStatsCollectorInterface* stats = nullptr;  // RunMetadata.
  uint32_t run = 0;
  uint32_t first_node = 0;

  bool any() const { return events || profiler || learning || stats != nullptr; }
  // Observers of TensorFlow's; they need more than the times of a node.
  bool by_tensorflow() const { return profiler || stats != nullptr; }
};

// What all nodes of a step share: the arguments of the executor's caller, the step's first error,
// and its observers.
class StepFrame {
 public:
  // Both must outlive the frame.
  StepFrame(const ExecutorState& executor, const tensorflow::Executor::Args& args);
  ~StepFrame();

  // Must succeed before nodes run; returns errors of the device.
  absl::Status Begin();
  // Sets the parameters that are the same for every kernel of the step.
  void Fill(tensorflow::OpKernelContext::Params* params);

  const ExecutorState& executor() const { return executor_; }
  const tensorflow::Executor::Args& args() const { return args_; }
  tensorflow::Device* device() const { return device_; }
  const Observers& observers() const { return observers_; }

  // Reports a run of a node to the tracer and the cost model. `worked`: ticks that count as work.
  void Note(const tensorflow::NodeItem& item, uint64_t scheduled, uint64_t start, uint64_t end,
            uint64_t worked, OutputBytes bytes = {}) const {
    if (observers_.events) {
      OpEvents::Add({scheduled, start, end, observers_.first_node + item.node_id, observers_.run,
                     OpEvent::Lines(bytes.made), OpEvent::Lines(bytes.passed)});
    }
    if (observers_.learning) executor_.cost_model()->Add(item.node_id, worked);
  }

  // What the tracer notes of a kernel's outputs; call it before they are moved.
  OutputBytes TracedBytes(tensorflow::OpKernelContext* context) const {
    return observers_.events ? BytesOfOutputs(context) : OutputBytes{};
  }

  // Keeps the step's first error, and cancels all nodes of the step that wait.
  void Fail(const absl::Status& status);
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  absl::Status status() const;

  // Ends the step: waits for the work that kernels deferred, and for the device.
  absl::Status EndHere();
  // The same without waiting. `done` may run before this returns, and may delete the frame.
  void EndLater(std::function<void(const absl::Status&)> done);

 private:
  void DeferOp();
  void EndDeferredOp();
  // Calls `then` when no deferred op is left; at once if there is none now.
  void WhenNoneDeferred(std::function<void()> then);
  absl::Status DeviceStatus(absl::Status status);

  const ExecutorState& executor_;
  const tensorflow::Executor::Args& args_;
  std::unique_ptr<tensorflow::Device> own_device_;  // If the caller passed an intra-op pool.
  tensorflow::Device* device_;
  tensorflow::DeviceContext* device_context_ = nullptr;
  std::optional<tensorflow::checkpoint::TensorSliceReaderCacheWrapper> slices_;
  Observers observers_;

  std::atomic<bool> failed_{false};
  // No other lock is taken, and no callback runs, with it held.
  mutable std::mutex mu_;
  absl::Status status_ TF_GUARDED_BY(mu_);
  int deferred_ TF_GUARDED_BY(mu_) = 0;
  std::function<void()> when_none_deferred_ TF_GUARDED_BY(mu_);
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_STEP_STEP_FRAME_H_
