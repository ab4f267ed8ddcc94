#include "rewriting/plan/stage_plan.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rewriting/plan/stage_plan_rules.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace workbench {
namespace {

using tensorflow::AttrValue;
using tensorflow::NameAttrList;
using Parameters = google::protobuf::Map<std::string, AttrValue>;
using Functions = google::protobuf::RepeatedPtrField<NameAttrList>;

constexpr int64_t kFormat = 3;

std::string KindOfList(const AttrValue::ListValue& list) {
  if (list.s_size() > 0) return "a list of strings";
  if (list.func_size() > 0) return "a list of functions";
  if (list.i_size() > 0) return "a list of integers";
  return list.ByteSizeLong() == 0 ? "an empty list" : "a list of another kind";
}

std::string KindOf(const AttrValue& value) {
  switch (value.value_case()) {
    case AttrValue::kS:
      return "a string";
    case AttrValue::kI:
      return "an integer";
    case AttrValue::kList:
      return KindOfList(value.list());
    case AttrValue::VALUE_NOT_SET:
      return "not set";
    default:
      return "a value of another kind";
  }
}

// The parameters of `owner`, which stands in messages.
class ParameterReader {
 public:
  ParameterReader(std::string owner, const Parameters& parameters)
      : owner_(std::move(owner)), parameters_(parameters) {}

  absl::Status Integer(const std::string& key, int64_t* value) const {
    const AttrValue* found = nullptr;
    TF_RETURN_IF_ERROR(Find(key, &found));
    if (found->value_case() != AttrValue::kI) return WrongKind(key, *found, "an integer");
    *value = found->i();
    return absl::OkStatus();
  }

  absl::Status String(const std::string& key, std::string* value) const {
    const AttrValue* found = nullptr;
    TF_RETURN_IF_ERROR(Find(key, &found));
    if (found->value_case() != AttrValue::kS) return WrongKind(key, *found, "a string");
    *value = found->s();
    return absl::OkStatus();
  }

  absl::Status Strings(const std::string& key, std::vector<std::string>* values) const {
    const AttrValue* found = nullptr;
    TF_RETURN_IF_ERROR(Find(key, &found));
    if (!found->has_list() || (found->list().s_size() == 0 && !IsEmpty(*found))) {
      return WrongKind(key, *found, "a list of strings");
    }
    values->assign(found->list().s().begin(), found->list().s().end());
    return absl::OkStatus();
  }

  absl::Status FunctionList(const std::string& key, const Functions** values) const {
    const AttrValue* found = nullptr;
    TF_RETURN_IF_ERROR(Find(key, &found));
    if (!found->has_list() || (found->list().func_size() == 0 && !IsEmpty(*found))) {
      return WrongKind(key, *found, "a list of functions");
    }
    *values = &found->list().func();
    return absl::OkStatus();
  }

  absl::Status Error(const std::string& text) const { return MalformedPlan(owner_, text); }

 private:
  static bool IsEmpty(const AttrValue& value) { return value.list().ByteSizeLong() == 0; }

  absl::Status Find(const std::string& key, const AttrValue** found) const {
    const auto entry = parameters_.find(key);
    if (entry == parameters_.end()) {
      return Error(absl::StrCat("parameter '", key, "' is missing"));
    }
    *found = &entry->second;
    return absl::OkStatus();
  }

  absl::Status WrongKind(const std::string& key, const AttrValue& found,
                         const std::string& expected) const {
    return Error(
        absl::StrCat("parameter '", key, "' is ", KindOf(found), "; expected ", expected));
  }

  const std::string owner_;
  const Parameters& parameters_;
};

absl::Status ParseNodes(const ParameterReader& reader, const std::string& key,
                        tensorflow::GraphDef* nodes, bool may_have_functions = false) {
  std::string bytes;
  TF_RETURN_IF_ERROR(reader.String(key, &bytes));
  if (!nodes->ParseFromString(bytes)) {
    return reader.Error(absl::StrCat("parameter '", key, "' (", bytes.size(),
                                     " bytes) is no serialized GraphDef"));
  }
  if (!nodes->has_library() || may_have_functions) return absl::OkStatus();
  return reader.Error(
      absl::StrCat("parameter '", key, "' has functions; the nodes of a plan call none"));
}

absl::Status ParseFusion(const NameAttrList& from, PlannedFusion* fusion) {
  const ParameterReader reader("fusion", from.attr());
  TF_RETURN_IF_ERROR(ParseNodes(reader, "added", &fusion->added));
  TF_RETURN_IF_ERROR(ParseNodes(reader, "replaced", &fusion->replaced));
  TF_RETURN_IF_ERROR(ParseNodes(reader, "region", &fusion->region,
                                /*may_have_functions=*/true));
  TF_RETURN_IF_ERROR(ParseNodes(reader, "sources", &fusion->sources));
  TF_RETURN_IF_ERROR(reader.Strings("choices", &fusion->choices));
  TF_RETURN_IF_ERROR(reader.Strings("inside", &fusion->inside));
  TF_RETURN_IF_ERROR(reader.Strings("reads", &fusion->reads));
  TF_RETURN_IF_ERROR(reader.Strings("writers", &fusion->writers));
  const Functions* groups = nullptr;
  TF_RETURN_IF_ERROR(reader.FunctionList("groups", &groups));
  for (const NameAttrList& group : *groups) {
    const ParameterReader own(absl::StrCat("fusion, group '", group.name(), "'"), group.attr());
    PlannedGroup& planned = fusion->groups.emplace_back();
    planned.op = group.name();
    TF_RETURN_IF_ERROR(own.Strings("members", &planned.members));
  }
  return absl::OkStatus();
}

absl::Status ParseCopySet(const std::string& stage, const NameAttrList& from, CopySet* copy) {
  copy->prefix = from.name();
  const ParameterReader reader(absl::StrCat(stage, ", copy '", copy->prefix, "'"), from.attr());
  if (copy->prefix.empty()) return reader.Error("the prefix is empty");
  TF_RETURN_IF_ERROR(reader.Strings("from", &copy->from));
  TF_RETURN_IF_ERROR(reader.Strings("to", &copy->to));
  if (copy->from.size() == copy->to.size()) return absl::OkStatus();
  return reader.Error(absl::StrCat("'from' has ", copy->from.size(), " tensors, 'to' has ",
                                   copy->to.size(), "; expected as many"));
}

absl::Status ParseTrail(const std::string& stage, const NameAttrList& from, PlannedTrail* trail) {
  const ParameterReader reader(absl::StrCat(stage, ", its trailing updates"), from.attr());
  TF_RETURN_IF_ERROR(reader.Strings("updates", &trail->updates));
  TF_RETURN_IF_ERROR(reader.Strings("moved", &trail->moved));
  TF_RETURN_IF_ERROR(reader.Strings("moved_ops", &trail->moved_ops));
  TF_RETURN_IF_ERROR(reader.Strings("waits", &trail->waits));
  TF_RETURN_IF_ERROR(reader.Strings("variables", &trail->variables));
  TF_RETURN_IF_ERROR(reader.String("begin", &trail->begin));
  TF_RETURN_IF_ERROR(reader.String("await", &trail->await));
  TF_RETURN_IF_ERROR(reader.String("return", &trail->returns));
  TF_RETURN_IF_ERROR(reader.String("settle", &trail->settle));
  TF_RETURN_IF_ERROR(ParseCopySet(stage, from, &trail->copy));
  if (trail->moved.size() == trail->moved_ops.size()) return absl::OkStatus();
  return reader.Error(absl::StrCat("'moved' has ", trail->moved.size(), " names, 'moved_ops' ",
                                   trail->moved_ops.size(), "; expected as many"));
}

absl::Status ParseStage(const NameAttrList& from, PlannedStage* stage) {
  stage->name = from.name();
  const std::string owner = absl::StrCat("stage '", stage->name, "'");
  const ParameterReader reader(owner, from.attr());
  TF_RETURN_IF_ERROR(reader.Strings("moved", &stage->moved));
  TF_RETURN_IF_ERROR(reader.Strings("moved_ops", &stage->moved_ops));
  TF_RETURN_IF_ERROR(reader.Strings("carried", &stage->carried));
  TF_RETURN_IF_ERROR(reader.String("take", &stage->take));
  TF_RETURN_IF_ERROR(reader.String("device", &stage->device));
  if (stage->moved.empty()) return reader.Error("'moved' is empty; expected the source first");
  if (stage->moved.size() != stage->moved_ops.size()) {
    return reader.Error(absl::StrCat("'moved' has ", stage->moved.size(), " names, 'moved_ops' ",
                                     stage->moved_ops.size(), "; expected as many"));
  }
  tensorflow::DeviceNameUtils::ParsedName parsed;
  if (!tensorflow::DeviceNameUtils::ParseFullName(stage->device, &parsed)) {
    return reader.Error(absl::StrCat("parameter 'device' is '", stage->device,
                                     "'; expected a device's name such as '/device:CPU:0'"));
  }
  TF_RETURN_IF_ERROR(ParseNodes(reader, "nodes", &stage->nodes));
  const Functions* copies = nullptr;
  TF_RETURN_IF_ERROR(reader.FunctionList("copies", &copies));
  for (const NameAttrList& copy : *copies) {
    TF_RETURN_IF_ERROR(ParseCopySet(owner, copy, &stage->copies.emplace_back()));
  }
  const Functions* trails = nullptr;
  TF_RETURN_IF_ERROR(reader.FunctionList("trail", &trails));
  if (trails->size() > 1) return reader.Error("parameter 'trail' has more than one function");
  for (const NameAttrList& trail : *trails) {
    TF_RETURN_IF_ERROR(ParseTrail(owner, trail, &stage->trail.emplace()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ParseStagePlan(const tensorflow::RewriterConfig::CustomGraphOptimizer& config,
                            StagePlan* plan) {
  const ParameterReader reader(absl::StrCat("optimizer '", config.name(), "'"),
                               config.parameter_map());
  int64_t format = 0;
  TF_RETURN_IF_ERROR(reader.Integer("format", &format));
  if (format != kFormat) {
    return reader.Error(absl::StrCat("the plan has format ", format, ", this library reads format ",
                                     kFormat, "; plan again"));
  }
  const Functions* fusions = nullptr;
  TF_RETURN_IF_ERROR(reader.FunctionList("fusion", &fusions));
  if (fusions->size() > 1) return reader.Error("parameter 'fusion' has more than one function");
  for (const NameAttrList& fusion : *fusions) {
    TF_RETURN_IF_ERROR(ParseFusion(fusion, &plan->fusion));
  }
  const Functions* stages = nullptr;
  TF_RETURN_IF_ERROR(reader.FunctionList("stages", &stages));
  for (const NameAttrList& stage : *stages) {
    TF_RETURN_IF_ERROR(ParseStage(stage, &plan->stages.emplace_back()));
  }
  return absl::OkStatus();
}

}  // namespace workbench
