#ifndef WORKBENCH_EXECUTOR_STEP_ASYNC_KERNEL_H_
#define WORKBENCH_EXECUTOR_STEP_ASYNC_KERNEL_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "executor/step/step_frame.h"
#include "tensorflow/core/common_runtime/graph_view.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace workbench {

// A kernel that ends later and maybe on another thread: an asynchronous one, or one that would
// block its caller and so gets a thread of args.runner.
class AsyncKernel {
 public:
  // Makes a context of its own from the step's parameters, which go on changing. The kernel's inputs
  // must stay where they are.
  AsyncKernel(const StepFrame& frame, const tensorflow::NodeItem& item,
              const tensorflow::OpKernelContext::Params& step_params, uint64_t scheduled);
  virtual ~AsyncKernel() = default;

  AsyncKernel(const AsyncKernel&) = delete;
  AsyncKernel& operator=(const AsyncKernel&) = delete;

  // The kernel may have ended, and this be gone, when it returns.
  void Start();

  const tensorflow::NodeItem& item() const { return item_; }
  tensorflow::OpKernelContext* context() { return &context_; }
  // When the kernel called back, in ticks; 0 where nobody watches.
  uint64_t ended() const { return ended_; }

  // Tells those who watch that the kernel has ended; what to note its outputs with, or null.
  tensorflow::NodeExecStatsInterface* EndWatch();
  // The same once its outputs are taken.
  void DoneWatch();

 protected:
  // Called once, when the kernel has called back and its start has returned, by whoever of the two
  // came second. `here`: on the thread that started it.
  virtual void Ended(bool here) = 0;

  tensorflow::OpKernelContext::Params params_;

 private:
  tensorflow::OpKernelContext::Params* OwnParams(uint64_t scheduled);
  void CalledBack();

  const StepFrame& frame_;
  const tensorflow::NodeItem& item_;
  std::optional<WatchedNode> watched_;
  tensorflow::OpKernelContext context_;
  uint64_t launched_ = 0;  // Ticks that its start took.
  uint64_t ended_ = 0;
  std::atomic<bool> second_{false};
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_STEP_ASYNC_KERNEL_H_
