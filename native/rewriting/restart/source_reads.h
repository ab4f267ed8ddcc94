#ifndef WORKBENCH_REWRITING_RESTART_SOURCE_READS_H_
#define WORKBENCH_REWRITING_RESTART_SOURCE_READS_H_

#include "rewriting/graph/named_graph.h"
#include "rewriting/restart/graph_stages.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace workbench {

// Before each op from which a stage reads its items, and which gives another value in every run, comes
// a WorkbenchSourceRead: a step that runs the op and takes from the stage has parts of two items.
// What control flow may skip is left alone, and so is what is on another task than the buffer.
absl::Status WatchSources(const GraphStages& stages, bool several_tasks, tensorflow::Graph* graph,
                          NamedGraph* named);

}  // namespace workbench

#endif  // WORKBENCH_REWRITING_RESTART_SOURCE_READS_H_
