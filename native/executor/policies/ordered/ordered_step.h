#ifndef WORKBENCH_EXECUTOR_POLICIES_ORDERED_ORDERED_STEP_H_
#define WORKBENCH_EXECUTOR_POLICIES_ORDERED_ORDERED_STEP_H_

#include <memory>
#include <optional>

#include "executor/memory/object_pool.h"
#include "executor/policies/ordered/ordered_plan.h"
#include "executor/step/step_frame.h"
#include "executor/scheduling/admission.h"
#include "executor/scheduling/workers.h"

namespace workbench {

// Runs the steps of one executor on the thread that calls, in the order of its plan; any number of
// callers at one time. The values of ended steps are kept for the next ones.
class OrderedSteps {
 public:
  OrderedSteps(const ExecutorShared& shared, const tensorflow::Graph& graph);
  ~OrderedSteps();

  // What asynchronous kernels leave behind comes back to the calling thread, which waits for it.
  // `turn` is the thread's, and paused meanwhile.
  absl::Status Run(const tensorflow::Executor::Args& args, Turn* turn);
  // Runs on one thread of args.runner, and here if the caller asks for that; what an asynchronous
  // kernel leaves behind goes to args.runner when it gets ready.
  void RunAsync(const tensorflow::Executor::Args& args, tensorflow::Executor::DoneCallback done);

 private:
  class Step;

  std::unique_ptr<Step> Acquire();

  const ExecutorShared& shared_;
  const OrderedPlan plan_;
  Kept<Step> kept_;
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_POLICIES_ORDERED_ORDERED_STEP_H_
