#ifndef WORKBENCH_EXECUTOR_STEP_OUTPUT_BYTES_H_
#define WORKBENCH_EXECUTOR_STEP_OUTPUT_BYTES_H_

#include <cstdint>

#include "tensorflow/core/framework/op_kernel.h"

namespace workbench {

// Memory of the outputs of one run of a kernel. What belongs to neither, such as the value of a
// variable or of a constant, lives longer than the step.
struct OutputBytes {
  int64_t made = 0;    // Of outputs that nothing else holds, and of an item out of a buffer.
  int64_t passed = 0;  // Of outputs that are an input's memory.
};

// Call it when the kernel has ended, before its outputs are moved. Text beyond the handles of the
// strings is not counted: that would take a look at each of them.
OutputBytes BytesOfOutputs(tensorflow::OpKernelContext* context);

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_STEP_OUTPUT_BYTES_H_
