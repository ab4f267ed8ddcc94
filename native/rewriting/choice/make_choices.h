#ifndef WORKBENCH_REWRITING_CHOICE_MAKE_CHOICES_H_
#define WORKBENCH_REWRITING_CHOICE_MAKE_CHOICES_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace workbench {

bool HasChoices(const tensorflow::Graph& graph);

// Takes the choices out of the graph of a run: what reads one, or waits for it, does so with the
// node of the branch that is taken, which has the name of the choice then. What nothing needs any
// more is taken out too.
absl::Status MakeChoices(bool stock, tensorflow::Graph* graph);

}  // namespace workbench

#endif  // WORKBENCH_REWRITING_CHOICE_MAKE_CHOICES_H_
