#ifndef WORKBENCH_REWRITING_CHOICE_ADD_CHOICES_H_
#define WORKBENCH_REWRITING_CHOICE_ADD_CHOICES_H_

#include <string>
#include <vector>

#include "rewriting/graph/named_graph.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace workbench {

inline constexpr char kChoiceOp[] = "WorkbenchChoice";
inline constexpr char kChoiceRefOp[] = "WorkbenchChoiceRef";
inline constexpr char kBranchOp[] = "WorkbenchBranch";
inline constexpr char kChoiceWaitOp[] = "WorkbenchChoiceWait";
// Before the names of nodes that are behind a choice.
inline constexpr char kStock[] = "workbench_stock/";
inline constexpr char kRewritten[] = "workbench_rewritten/";

// The name of the node that waits for what a node waits for in one of the branches.
std::string WaitName(const std::string& node, bool rewritten);
// The name of the op at the end of a node's branch that gives tensors.
std::string BranchName(const std::string& node, bool rewritten);

// Whether an edge counts only where this branch of a choice is taken: it leads into the choice, or
// from a node that waits for that branch.
bool IsOfBranch(const tensorflow::Edge& edge, bool rewritten);

// Keeps what nodes were before a plan changed them, until it is known what a run feeds and fetches.
//
// `originals` are the definitions that nodes of the graph had. Beside each node comes one like that:
//   1. a node of which only the control inputs changed stays, and waits as in either branch;
//   2. one without outputs becomes a node that does nothing, behind the effect of either branch;
//   3. any other becomes a choice between the tensors of both.
// What a node of a branch waits for it waits for by a node that is of that branch, too. A node that
// is as it was is left alone.
absl::Status AddChoices(const std::vector<tensorflow::NodeDef>& originals, NamedGraph* graph);

}  // namespace workbench

#endif  // WORKBENCH_REWRITING_CHOICE_ADD_CHOICES_H_
