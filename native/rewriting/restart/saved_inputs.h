#ifndef WORKBENCH_REWRITING_RESTART_SAVED_INPUTS_H_
#define WORKBENCH_REWRITING_RESTART_SAVED_INPUTS_H_

#include "rewriting/graph/named_graph.h"
#include "rewriting/restart/graph_stages.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace workbench {

// Saves with the state of an iterator what stages have read ahead of it. The op that serializes
// becomes, under its own name, the last one of this chain:
//   check, a hold for each stage that reads the iterator, the op itself, what each stage holds, both.
// What else saves the state of an iterator or a reader gets the check alone, which refuses while a
// stage has read ahead. Nodes with the ids in `staged` stay.
absl::Status SaveInputs(const GraphStages& stages, const Ids& staged, tensorflow::Graph* graph,
                        NamedGraph* named);

// Gives what was saved so back to the stages. The op that restores an iterator becomes, under its own
// name, what waits for that op and for a preload of each stage.
absl::Status RestoreInputs(const GraphStages& stages, const Ids& staged, tensorflow::Graph* graph,
                           NamedGraph* named);

}  // namespace workbench

#endif  // WORKBENCH_REWRITING_RESTART_SAVED_INPUTS_H_
