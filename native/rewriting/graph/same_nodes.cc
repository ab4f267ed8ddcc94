#include "rewriting/graph/same_nodes.h"

#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/tensor_id.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace workbench {
namespace {

using tensorflow::AttrValue;
using tensorflow::DeviceNameUtils;
using tensorflow::NodeDef;

constexpr int kMostShown = 60;

std::vector<std::string> Tensors(const NodeDef& node) {
  std::vector<std::string> tensors;
  for (const std::string& input : node.input()) {
    if (!absl::StartsWith(input, "^")) {
      tensors.push_back(tensorflow::ParseTensorName(input).ToString());
    }
  }
  return tensors;
}

std::set<std::string> Waits(const NodeDef& node) {
  std::set<std::string> waits;
  for (const std::string& input : node.input()) {
    if (absl::StartsWith(input, "^")) waits.insert(input.substr(1));
  }
  return waits;
}

// The name of an attribute that two nodes do not have in common; empty if there is none.
std::string OtherAttribute(const NodeDef& one, const NodeDef& other) {
  const auto of_both = {std::pair(&one, &other), std::pair(&other, &one)};
  for (const auto& [from, in] : of_both) {
    for (const auto& [name, value] : from->attr()) {
      if (absl::StartsWith(name, "_")) continue;
      const auto found = in->attr().find(name);
      if (found == in->attr().end() || !tensorflow::AreAttrValuesEqual(value, found->second)) {
        return name;
      }
    }
  }
  return "";
}

std::string Shown(const NodeDef& node, const std::string& attribute) {
  const auto found = node.attr().find(attribute);
  if (found == node.attr().end()) return "nothing";
  const std::string text = tensorflow::SummarizeAttrValue(found->second);
  return text.size() > kMostShown ? absl::StrCat(text.substr(0, kMostShown), "…") : text;
}

bool SameDevice(const std::string& one, const std::string& other) {
  if (one == other) return true;
  DeviceNameUtils::ParsedName first, second;
  return DeviceNameUtils::ParseFullName(one, &first) &&
         DeviceNameUtils::ParseFullName(other, &second) && first == second;
}

std::string WaitsShown(const NodeDef& node) {
  const std::set<std::string> waits = Waits(node);
  return waits.empty() ? "nothing" : absl::StrJoin(waits, ", ");
}

}  // namespace

bool SameButForWaits(const NodeDef& one, const NodeDef& other) {
  return one.op() == other.op() && Tensors(one) == Tensors(other) &&
         OtherAttribute(one, other).empty();
}

bool SameWaits(const NodeDef& one, const NodeDef& other) { return Waits(one) == Waits(other); }

std::string Difference(const NodeDef& planned, const NodeDef& found, bool reads) {
  if (planned.op() != found.op()) {
    return absl::StrCat("is a ", found.op(), "; the plan was made for a ", planned.op());
  }
  const std::string attribute = OtherAttribute(planned, found);
  if (!attribute.empty()) {
    return absl::StrCat("has ", attribute, "=", Shown(found, attribute),
                        "; the plan was made for ", Shown(planned, attribute));
  }
  if (!reads) return "";
  const std::vector<std::string> wanted = Tensors(planned), read = Tensors(found);
  if (wanted != read) {
    return absl::StrCat("reads ", absl::StrJoin(read, ", "), "; the plan was made for ",
                        absl::StrJoin(wanted, ", "));
  }
  if (!SameWaits(planned, found)) {
    return absl::StrCat("waits for ", WaitsShown(found), "; the plan was made for one that waits for ",
                        WaitsShown(planned));
  }
  if (!SameDevice(planned.device(), found.device())) {
    return absl::StrCat("asks for device '", found.device(), "'; the plan was made for '",
                        planned.device(), "'");
  }
  return "";
}

}  // namespace workbench
