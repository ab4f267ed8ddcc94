#ifndef WORKBENCH_REWRITING_GRAPH_SAME_NODES_H_
#define WORKBENCH_REWRITING_GRAPH_SAME_NODES_H_

#include <string>

#include "tensorflow/core/framework/node_def.pb.h"

namespace workbench {

// Whether two nodes have one op, read the same tensors, and have the same attributes. Those whose
// names begin with "_" say where a node comes from, not what it does.
bool SameButForWaits(const tensorflow::NodeDef& one, const tensorflow::NodeDef& other);

// Whether two nodes wait for the same nodes.
bool SameWaits(const tensorflow::NodeDef& one, const tensorflow::NodeDef& other);

// In what a node differs from the one that a plan was made for, a clause; empty if in nothing.
// `reads` says whether what it reads, waits for and where it is to run count, too.
std::string Difference(const tensorflow::NodeDef& planned, const tensorflow::NodeDef& found,
                       bool reads);

}  // namespace workbench

#endif  // WORKBENCH_REWRITING_GRAPH_SAME_NODES_H_
