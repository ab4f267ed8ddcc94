#ifndef WORKBENCH_REWRITING_GRAPH_IDENTITY_DEVICE_H_
#define WORKBENCH_REWRITING_GRAPH_IDENTITY_DEVICE_H_

#include <string>

#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/graph/graph.h"

namespace workbench {

// The device to ask for when an Identity of record values stands in for `node`.
//
// Placement gives an Identity any device; the node it stands in for may be able to run, or prefer
// to run, on the CPU only. Without this its values, strings even, and what is colocated with it
// would move to a GPU. `devices` may be null: then it is the node's own device.
std::string IdentityDevice(const tensorflow::Node& node, const tensorflow::DeviceSet* devices);

}  // namespace workbench

#endif  // WORKBENCH_REWRITING_GRAPH_IDENTITY_DEVICE_H_
