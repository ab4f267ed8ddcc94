#ifndef WORKBENCH_EXECUTOR_STEP_NODE_IO_H_
#define WORKBENCH_EXECUTOR_STEP_NODE_IO_H_

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/entry.h"
#include "tensorflow/core/common_runtime/graph_view.h"
#include "tensorflow/core/common_runtime/step_stats_collector.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace workbench {

// A kernel's inputs and outputs, by TensorFlow's rules and with its error messages.

// Fills the kernel's inputs, [item.num_inputs], from its producers' outputs in `first`, as many.
// The value of a reference variable is read here, under the variable's lock, unless the kernel
// takes the reference. `dead`: an input is missing because a branch was not taken.
absl::Status PrepareInputs(const tensorflow::NodeItem& item, tensorflow::Entry* first,
                           tensorflow::TensorValue* inputs,
                           tensorflow::AllocatorAttributes* attributes, bool* dead);

// Moves the kernel's outputs into `outputs`, [item.num_outputs] entries without values. Returns the
// kernel's error, with the node's name. `stats` may be null.
absl::Status ProcessOutputs(const tensorflow::NodeItem& item, tensorflow::OpKernelContext* context,
                            tensorflow::Entry* outputs, tensorflow::NodeExecStatsInterface* stats);

// The error of a kernel as a step reports it.
absl::Status KernelError(const tensorflow::NodeItem& item, tensorflow::OpKernelContext* context);

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_STEP_NODE_IO_H_
