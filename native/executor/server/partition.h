#ifndef WORKBENCH_EXECUTOR_SERVER_PARTITION_H_
#define WORKBENCH_EXECUTOR_SERVER_PARTITION_H_

// How an executor policy comes to the workers of a server.
//
// A worker makes TensorFlow's own executors, whatever the session's config says. So the policy
// travels in the graph:
//
// 1. The master's pass (mark_pass.cc) writes policy and session on a node of each device, once a run's
//    feeds and fetches are known.
// 2. The worker's pass (partition_pass.cc) replaces a partition with such a mark by one node. A
//    worker without this library does not look at the mark, and stays with TensorFlow's executor.
// 3. The kernel of that node (partition_kernel.cc) makes an executor of the policy for the old
//    partition. It runs it with the step's own rendezvous, cancellation and collector. Kernels with
//    state are those of the session, as in a partition of TensorFlow.

#include <memory>

#include "executor/server/pending_graphs.h"
#include "tensorflow/core/graph/graph.h"

namespace workbench {

// On the marked node of a device.
constexpr char kMarkedExecutor[] = "_workbench_executor";
constexpr char kMarkedSession[] = "_workbench_session";
constexpr char kMarkedOptimizer[] = "_workbench_optimizer";

// The node that runs a partition.
constexpr char kPartitionOp[] = "WorkbenchPartition";

// Of the process.
PendingGraphs<tensorflow::Graph>& PendingPartitions();

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_SERVER_PARTITION_H_
