#ifndef WORKBENCH_EXECUTOR_STEP_NODE_IO_H_
#define WORKBENCH_EXECUTOR_STEP_NODE_IO_H_

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/entry.h"
#include "tensorflow/core/common_runtime/graph_view.h"
#include "tensorflow/core/common_runtime/step_stats_collector.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace workbench {

// Values go into a kernel and come out of it by TensorFlow's rules, with its messages.

// Fills the kernel's inputs from what its producers left in `first`, [item.num_inputs] each. A
// value that lives in a variable is read here, under its lock, unless the kernel wants the variable
// itself. `dead`: an input is missing, so a branch was not taken.
absl::Status PrepareInputs(const tensorflow::NodeItem& item, tensorflow::Entry* first,
                           tensorflow::TensorValue* inputs,
                           tensorflow::AllocatorAttributes* attributes, bool* dead);

// Moves what the kernel made into `outputs`, [item.num_outputs] without values; or its error, with
// the node's name. `stats` may be null.
absl::Status ProcessOutputs(const tensorflow::NodeItem& item, tensorflow::OpKernelContext* context,
                            tensorflow::Entry* outputs, tensorflow::NodeExecStatsInterface* stats);

// The error of a kernel as a step reports it.
absl::Status KernelError(const tensorflow::NodeItem& item, tensorflow::OpKernelContext* context);

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_STEP_NODE_IO_H_
