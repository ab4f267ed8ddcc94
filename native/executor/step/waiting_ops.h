#ifndef WORKBENCH_EXECUTOR_STEP_WAITING_OPS_H_
#define WORKBENCH_EXECUTOR_STEP_WAITING_OPS_H_

#include <string>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace workbench {

// Whether a kernel of this op waits inside Compute for another op, maybe of the same step. These
// are TensorFlow's staging areas.
bool BlocksThread(const std::string& op);

// Whether a kernel of this op runs the user's Python code, or waits for it, inside Compute. That
// code may wait, too.
bool RunsPython(const std::string& op);

// Whether the node may wait for an op, a thread or another process, or be what another op waits
// for.
bool MayWait(const tensorflow::Node& node, const tensorflow::FunctionLibraryDefinition& library);

// Whether the node calls functions, as While and PartitionedCall do, in which some op, at any
// depth, may wait as above. An op that is not registered counts as one that may.
bool CallsFunctionThatMayWait(const tensorflow::Node& node,
                      const tensorflow::FunctionLibraryDefinition& library);

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_STEP_WAITING_OPS_H_
