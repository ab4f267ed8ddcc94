#include "rewriting/plan/stage_plan_rules.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace workbench {
namespace {

using tensorflow::AttrValue;
using tensorflow::NodeDef;
using tensorflow::PartialTensorShape;
using NameViews = absl::flat_hash_set<absl::string_view>;  // Of strings of the plan.

bool IsNodeName(const std::string& name) {
  NodeDef def;
  def.set_name(name);
  return tensorflow::ValidateExternalNodeDefSyntax(def).ok();
}

int Puts(const PlannedStage& stage) {
  const auto& nodes = stage.nodes.node();
  return std::count_if(nodes.begin(), nodes.end(),
                       [](const NodeDef& node) { return node.op() == kPutOp; });
}

class StageRules {
 public:
  // `others` are the own nodes of the stages before.
  StageRules(const PlannedStage& stage, NameViews* others)
      : stage_(stage), others_(*others), moved_(stage.moved.begin(), stage.moved.end()) {}

  absl::Status Check() {
    if (stage_.name.empty()) return Error("the stage has no name");
    TF_RETURN_IF_ERROR(CheckMoved());
    TF_RETURN_IF_ERROR(CheckCarried());
    TF_RETURN_IF_ERROR(CheckCopies());
    for (const NodeDef& node : stage_.nodes.node()) TF_RETURN_IF_ERROR(CheckNode(node));
    TF_RETURN_IF_ERROR(CheckTrail());
    return CheckTake();
  }

 private:
  absl::Status CheckMoved() const {
    NameViews seen;
    for (const std::string& name : stage_.moved) {
      if (!seen.insert(name).second) return Error(absl::StrCat("'", name, "' is moved twice"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckCarried() const {
    NameViews seen;
    for (const std::string& name : stage_.carried) {
      if (!seen.insert(name).second) return Error(absl::StrCat("'", name, "' is carried twice"));
      if (!moved_.contains(name)) {
        return Error(absl::StrCat("carried node '", name, "' is not moved"));
      }
    }
    const std::string& source = stage_.moved.front();
    if (seen.contains(source)) return absl::OkStatus();
    return Error(absl::StrCat("source '", source,
                              "' is not carried, so a step would consume a batch of its own"));
  }

  absl::Status CheckCopies() const {
    std::vector<const CopySet*> copies;
    for (const CopySet& copy : stage_.copies) copies.push_back(&copy);
    if (stage_.trail.has_value()) copies.push_back(&stage_.trail->copy);
    NameViews prefixes;
    for (const CopySet* copy : copies) {
      const std::string owner = absl::StrCat("copy '", copy->prefix, "'");
      if (!IsNodeName(copy->prefix)) {
        return Error(absl::StrCat(owner, ": the prefix cannot begin the name of a node"));
      }
      if (prefixes.insert(copy->prefix).second) continue;
      return Error(absl::StrCat(owner, " is there twice"));
    }
    const int puts = Puts(stage_);
    if (puts > 0 && stage_.copies.size() <= static_cast<size_t>(puts)) return absl::OkStatus();
    return Error(absl::StrCat("the stage has ", puts, " puts and ", stage_.copies.size(),
                              " copy sets; expected a put at least, and a put for each copy set"));
  }

  absl::Status CheckNode(const NodeDef& node) {
    const std::string owner = absl::StrCat("own node '", node.name(), "'");
    if (!IsNodeName(node.name())) return Error(absl::StrCat(owner, ": no node can have that name"));
    if (node.op() != "Placeholder" && !absl::StartsWith(node.op(), kBufferOps)) {
      return Error(absl::StrCat(owner, " is a ", node.op(),
                                "; expected an op of a buffer or a Placeholder"));
    }
    if (moved_.contains(node.name())) return Error(absl::StrCat(owner, " is moved too"));
    if (!others_.insert(node.name()).second) return Error(absl::StrCat(owner, " is there twice"));
    tensorflow::DeviceNameUtils::ParsedName parsed;
    if (!tensorflow::DeviceNameUtils::ParseFullName(node.device(), &parsed)) {
      return Error(absl::StrCat(owner, " asks for device '", node.device(),
                                "'; expected a device's name such as '/device:CPU:0'"));
    }
    return CheckShapes(owner, node);
  }

  // TensorFlow aborts the process on some shapes that are none.
  absl::Status CheckShapes(const std::string& owner, const NodeDef& node) const {
    for (const auto& [key, value] : node.attr()) {
      const auto& list = value.list().shape();
      const bool valid =
          (!value.has_shape() || PartialTensorShape::IsValid(value.shape())) &&
          std::all_of(list.begin(), list.end(),
                      [](const auto& shape) { return PartialTensorShape::IsValid(shape); });
      if (valid) continue;
      return Error(absl::StrCat(owner, ": attribute '", key, "' has a shape that no tensor has"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckTrail() const {
    if (!stage_.trail.has_value()) return absl::OkStatus();
    const PlannedTrail& trail = *stage_.trail;
    const NameViews moved(trail.moved.begin(), trail.moved.end());
    for (const std::string& name : trail.moved) {
      if (moved_.contains(name)) {
        return Error(absl::StrCat("trailing node '", name, "' is moved ahead too"));
      }
    }
    for (const std::string& name : trail.updates) {
      if (!moved.contains(name)) {
        return Error(absl::StrCat("update '", name, "' is not among the trailing nodes"));
      }
    }
    TF_RETURN_IF_ERROR(CheckOwn("begin", trail.begin, "WorkbenchBufferBegin"));
    TF_RETURN_IF_ERROR(CheckOwn("await", trail.await, "WorkbenchBufferAwait"));
    TF_RETURN_IF_ERROR(CheckOwn("return", trail.returns, "WorkbenchBufferReturn"));
    return CheckOwn("settle", trail.settle, "WorkbenchBufferSettle");
  }

  absl::Status CheckTake() const { return CheckOwn("take", stage_.take, kTakeOp); }

  // Requires that the stage has this node of its own, of this type.
  absl::Status CheckOwn(const char* role, const std::string& name, const char* op) const {
    for (const NodeDef& node : stage_.nodes.node()) {
      if (node.name() != name) continue;
      if (node.op() == op) return absl::OkStatus();
      return Error(absl::StrCat(role, " '", name, "' is a ", node.op(), "; expected a ", op));
    }
    return Error(absl::StrCat(role, " '", name, "' is not among the stage's own nodes"));
  }

  absl::Status Error(const std::string& text) const {
    return MalformedPlan(absl::StrCat("stage '", stage_.name, "'"), text);
  }

  const PlannedStage& stage_;
  NameViews& others_;
  const NameViews moved_;
};

}  // namespace

absl::Status MalformedPlan(const std::string& owner, const std::string& text) {
  return absl::InvalidArgumentError(
      absl::StrCat("stage plan, ", owner, ": ", text,
                   "; a plan is written by the Workbench of the same version as this library"));
}

absl::Status CheckStagePlan(const StagePlan& plan) {
  NameViews stages;
  NameViews own_nodes;
  for (const PlannedStage& stage : plan.stages) {
    if (!stages.insert(stage.name).second) {
      return MalformedPlan(absl::StrCat("stage '", stage.name, "'"),
                           "another stage has this name too");
    }
    TF_RETURN_IF_ERROR(StageRules(stage, &own_nodes).Check());
  }
  return absl::OkStatus();
}

}  // namespace workbench
