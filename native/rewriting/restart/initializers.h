#ifndef WORKBENCH_REWRITING_RESTART_INITIALIZERS_H_
#define WORKBENCH_REWRITING_RESTART_INITIALIZERS_H_

#include <string>

#include "tensorflow/core/graph/graph.h"

namespace workbench {

constexpr char kInputRestartOp[] = "WorkbenchInputRestart";
constexpr char kInputSaveOp[] = "WorkbenchInputSave";

// Which input of an op that makes an iterator or a reader begin again is its handle; -1 for any
// other op.
int HandleOfInitializer(const std::string& op);

// The same of an op that returns the state of an iterator or a reader.
int HandleOfSave(const std::string& op);

// Whether the node makes the handle of an iterator or a reader that an initializer can take.
bool MakesHandle(const tensorflow::Node& node);

}  // namespace workbench

#endif  // WORKBENCH_REWRITING_RESTART_INITIALIZERS_H_
