#ifndef WORKBENCH_TRANSFERS_PACK_TRANSFERS_H_
#define WORKBENCH_TRANSFERS_PACK_TRANSFERS_H_

#include <cstdint>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace workbench {

// Lets tensors that one task sends another travel as one.
//
// The graph is one that is run as it is, of a session or of a function: placed, and with no node that
// the run does not need. A call in it has ended before what it returns is sent.
// TensorFlow sends each tensor in a message of its own. A tensor's hop is how many transfers lie on
// the longest path to it. Those of one hop, from one device to another, are packed into one tensor
// before and taken out of it behind. None of them depends on another, for every transfer adds to the
// hop, and edges that are added lead from a hop to a later one: the graph gets no cycle.
//
// What stays on its own:
//
// 1. A tensor of more than `largest_bytes`, by its static shape: it takes its time in any case, and
//    would be copied. One of unknown size is packed.
// 2. What follows a branch or loop: it may not be there, and would take others with it.
// 3. What follows an op that waits for other ops, as a queue's, perhaps for one of the same run that
//    needs a tensor of the pack; also where a function that is called has it.
// 4. Strings, resources, variants and references; what is on another device than a CPU; feeds and
//    fetches; control edges.
//
// `functions` are those that the graph may call.
absl::Status PackTransfers(int64_t largest_bytes,
                           const tensorflow::FunctionLibraryDefinition& functions,
                           tensorflow::Graph* graph);

}  // namespace workbench

#endif  // WORKBENCH_TRANSFERS_PACK_TRANSFERS_H_
