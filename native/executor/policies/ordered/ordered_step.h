#ifndef WORKBENCH_EXECUTOR_POLICIES_ORDERED_ORDERED_STEP_H_
#define WORKBENCH_EXECUTOR_POLICIES_ORDERED_ORDERED_STEP_H_

#include <memory>
#include <optional>

#include "executor/memory/object_pool.h"
#include "executor/policies/ordered/ordered_plan.h"
#include "executor/scheduling/admission.h"
#include "executor/scheduling/workers.h"
#include "executor/step/step_frame.h"

namespace workbench {

// Runs the steps of one executor on their calling threads, in the order of its plan. Any number of
// threads may call at one time. Later steps use the memory of ended ones again.
class OrderedSteps {
 public:
  OrderedSteps(const ExecutorState& executor, const tensorflow::Graph& graph);
  ~OrderedSteps();

  // The calling thread waits for asynchronous kernels, and runs the nodes behind them. `admission`
  // is the thread's, and paused while the thread waits.
  absl::Status Run(const tensorflow::Executor::Args& args, Admission* admission);
  // Runs on one thread of args.runner, or on this thread if args ask for it. The nodes behind an
  // asynchronous kernel go to args.runner when it has ended.
  void RunAsync(const tensorflow::Executor::Args& args, tensorflow::Executor::DoneCallback done);

 private:
  class Step;

  std::unique_ptr<Step> Acquire();

  const ExecutorState& executor_;
  const OrderedPlan plan_;
  ObjectPool<Step> idle_steps_;
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_POLICIES_ORDERED_ORDERED_STEP_H_
