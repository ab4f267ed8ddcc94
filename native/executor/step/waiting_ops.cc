#include "executor/step/waiting_ops.h"

#include <algorithm>
#include <iterator>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace workbench {
namespace {

using tensorflow::FunctionLibraryDefinition;
using tensorflow::NodeDef;
using tensorflow::OpDef;

// Safe stateful ops: a kernel reads or changes the state without waiting.
bool NeverWaits(absl::string_view op) {
  static const auto* const names = new absl::flat_hash_set<absl::string_view>(
      {"_Arg", "_DeviceArg", "_Retval", "_DeviceRetval", "Assert", "CheckNumerics", "CheckNumericsV2",
       "Empty", "IsVariableInitialized", "Multinomial", "Print", "PrintV2", "RandomGamma",
       "RandomPoisson", "RandomPoissonV2", "RandomShuffle", "RandomStandardNormal",
       "RandomUniform", "RandomUniformInt", "ReadVariableOp", "RngReadAndSkip", "RngSkip",
       "TruncatedNormal", "VarHandleOp", "VarIsInitializedOp", "Variable", "VariableShape",
       "VariableV2"});
  static constexpr absl::string_view kFamilies[] = {
      "Apply",           "Assign",          "LookupTable",     "ResourceApply", "ResourceGather",
      "ResourceScatter", "ResourceSparseApply", "Scatter",     "SparseApply",   "Stack",
      "TensorArray"};
  return names->contains(op) ||
         std::any_of(std::begin(kFamilies), std::end(kFamilies),
                     [op](absl::string_view family) { return absl::StartsWith(op, family); });
}

bool HasState(const OpDef& op) {
  return op.is_stateful() ||
         std::any_of(op.input_arg().begin(), op.input_arg().end(), [](const OpDef::ArgDef& input) {
           return input.is_ref() || input.type() == tensorflow::DT_RESOURCE;
         });
}

// Looks at functions, and at those that they call, each of them once.
class Search {
 public:
  explicit Search(const FunctionLibraryDefinition& library) : library_(library) {}

  // Whether a function that the node calls may wait. Sets `calls` where it calls any.
  bool FunctionsMayWait(const NodeDef& node, bool* calls) {
    *calls = library_.Contains(node.op());
    if (*calls && FunctionMayWait(node.op())) return true;
    for (const auto& [name, value] : node.attr()) {
      if (value.has_func()) {
        *calls = true;
        if (FunctionMayWait(value.func().name())) return true;
      }
      for (const auto& function : value.list().func()) {
        *calls = true;
        if (FunctionMayWait(function.name())) return true;
      }
    }
    return false;
  }

  bool NodeMayWait(const NodeDef& node) {
    bool calls = false;
    if (FunctionsMayWait(node, &calls)) return true;
    if (calls || NeverWaits(node.op())) return false;
    const OpDef* op = nullptr;
    return RunsPython(node.op()) || !library_.LookUpOpDef(node.op(), &op).ok() || HasState(*op);
  }

 private:
  bool FunctionMayWait(const std::string& name) {
    if (!seen_.insert(name).second) return false;
    const auto function = library_.FindRecord(name);
    if (function == nullptr) return true;
    const auto& nodes = function->fdef().node_def();
    return std::any_of(nodes.begin(), nodes.end(),
                       [this](const NodeDef& node) { return NodeMayWait(node); });
  }

  const FunctionLibraryDefinition& library_;
  absl::flat_hash_set<std::string> seen_;
};

}  // namespace

bool BlocksThread(const std::string& op) {
  static const auto* const ops = new absl::flat_hash_set<std::string>(
      {"Stage", "Unstage", "StagePeek", "MapStage", "MapUnstage", "MapUnstageNoKey", "MapPeek",
       "OrderedMapStage", "OrderedMapUnstage", "OrderedMapUnstageNoKey", "OrderedMapPeek"});
  return ops->contains(op);
}

bool RunsPython(const std::string& op) {
  return op == "PyFunc" || op == "PyFuncStateless" || op == "EagerPyFunc" ||
         op == "IteratorGetNextSync";
}

bool MayWait(const tensorflow::Node& node, const FunctionLibraryDefinition& library) {
  return Search(library).NodeMayWait(node.def());
}

bool CallsFunctionThatMayWait(const tensorflow::Node& node,
                              const FunctionLibraryDefinition& library) {
  bool calls = false;
  return Search(library).FunctionsMayWait(node.def(), &calls);
}

}  // namespace workbench
