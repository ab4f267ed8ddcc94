#ifndef WORKBENCH_EXECUTOR_STEP_ASYNC_KERNEL_H_
#define WORKBENCH_EXECUTOR_STEP_ASYNC_KERNEL_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "executor/step/observed_node.h"
#include "executor/step/step_frame.h"
#include "tensorflow/core/common_runtime/graph_view.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace workbench {

// A kernel that ends later, maybe on another thread: an asynchronous kernel, or one that would
// block the thread of its step and so runs on a thread of args.runner.
class AsyncKernel {
 public:
  // Copies the step's parameters, which change from node to node. The kernel's inputs must stay
  // where they are.
  AsyncKernel(const StepFrame& frame, const tensorflow::NodeItem& item,
              const tensorflow::OpKernelContext::Params& step_params, uint64_t scheduled);
  virtual ~AsyncKernel() = default;

  AsyncKernel(const AsyncKernel&) = delete;
  AsyncKernel& operator=(const AsyncKernel&) = delete;

  // The kernel may have ended, and this object may be deleted, before Start returns.
  void Start();

  const tensorflow::NodeItem& item() const { return item_; }
  tensorflow::OpKernelContext* context() { return &context_; }
  // When the kernel called back, in ticks; 0 without an observer.
  uint64_t ended() const { return ended_; }

  // Reports the kernel's end to the observers. Returns the step stats that want its outputs, or
  // null.
  tensorflow::NodeExecStatsInterface* EndObservation();
  // The same after the outputs were taken.
  void OutputsObserved();

 protected:
  // Called once, when the kernel has called back and Start no longer needs this object. `here`: on
  // the thread that called Start.
  virtual void Ended(bool here) = 0;

  tensorflow::OpKernelContext::Params params_;

 private:
  tensorflow::OpKernelContext::Params* OwnParams(uint64_t scheduled);
  void CalledBack();

  const StepFrame& frame_;
  const tensorflow::NodeItem& item_;
  std::optional<ObservedNode> observed_;
  tensorflow::OpKernelContext context_;
  uint64_t launched_ = 0;  // Ticks that its start took.
  uint64_t ended_ = 0;
  std::atomic<bool> second_{false};
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_STEP_ASYNC_KERNEL_H_
