#ifndef WORKBENCH_EXECUTOR_STEP_INTRA_OP_POOL_H_
#define WORKBENCH_EXECUTOR_STEP_INTRA_OP_POOL_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/platform/threadpool.h"
#include "tensorflow/core/platform/threadpool_interface.h"

namespace workbench {

// Worker threads of kernels, in the place of a device's own. They do not spin when idle: what runs
// ahead of a step must not take the step's cores while it waits.
class IntraOpPool : public tensorflow::thread::ThreadPoolInterface {
 public:
  // `threads` of at least 1, which show the last 15 characters of `name`.
  IntraOpPool(const std::string& name, int threads);
  // Waits until the threads have ended; no step may use them any more.
  ~IntraOpPool() override;

  void Schedule(std::function<void()> task) override;
  void ScheduleWithHint(std::function<void()> task, int start, int limit) override;
  void Cancel() override;
  int NumThreads() const override;
  int CurrentThreadId() const override;

  // Steps that the calling thread starts from here on have their kernels use `pool`, which must
  // outlive them; null: the device's own threads.
  static void UseInThisThread(IntraOpPool* pool);

 private:
  class NamedThreads;

  const std::unique_ptr<NamedThreads> env_;
  tensorflow::thread::ThreadPool threads_;
};

// `args` with the pool that the calling thread uses; none where it uses none, or where the args
// have one already.
std::optional<tensorflow::Executor::Args> ArgsOnOwnPool(const tensorflow::Executor::Args& args);

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_STEP_INTRA_OP_POOL_H_
