#ifndef WORKBENCH_REWRITING_RESTART_RESTART_IN_FUNCTIONS_H_
#define WORKBENCH_REWRITING_RESTART_RESTART_IN_FUNCTIONS_H_

#include <set>

#include "rewriting/graph/named_graph.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace workbench {

// Puts a WorkbenchInputRestart before each initializer, and a WorkbenchInputSave before each op that
// saves the state of an input, in the functions that the graph's nodes
// call, at any depth. Such a function gets a copy of another name, which is called in its stead:
// a session that extends its graph compares functions with those it has by name. The copies go into
// the graph's library and into `library`. Nodes with the ids in `left_alone` call what they called.
absl::Status RestartInFunctions(const std::set<int>& left_alone, tensorflow::Graph* graph,
                                NamedGraph* named,
                                tensorflow::FunctionLibraryDefinition* library);

}  // namespace workbench

#endif  // WORKBENCH_REWRITING_RESTART_RESTART_IN_FUNCTIONS_H_
