#ifndef WORKBENCH_STAGING_STEP_STEP_END_H_
#define WORKBENCH_STAGING_STEP_STEP_END_H_

#include <functional>

#include "tensorflow/core/framework/op_kernel.h"

namespace workbench {

// Calls `then` once the step has ended on this task, however it does.
absl::Status AtStepEnd(tensorflow::OpKernelContext* context, std::function<void()> then);

}  // namespace workbench

#endif  // WORKBENCH_STAGING_STEP_STEP_END_H_
