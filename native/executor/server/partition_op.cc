#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"

// Not stateful: TensorFlow keeps the kernels of stateful ops for as long as the session lasts.
REGISTER_OP("WorkbenchPartition")
    .Attr("executor: string")
    .Attr("session: string")
    .Attr("optimizer: string")
    .Attr("nodes: string")
    .Attr("number: int")
    // Receives are within: where a task is lost, the error stays the one that sessions recover from.
    .SetIsDistributedCommunication()
    .SetShapeFn(tensorflow::shape_inference::NoOutputs)
    .Doc(R"(
Runs a partition of a server's graph by an executor policy. Passes alone make it.

executor: the policy's executor type.
session: a name of the session, by which its kernels with state are found.
optimizer: OptimizerOptions of the session, serialized.
nodes: the partition as a GraphDef without large constants, serialized, for those who look.
number: of the partition among those that wait for their kernels.
)");
