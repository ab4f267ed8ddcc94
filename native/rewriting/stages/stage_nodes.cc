#include "rewriting/stages/stage_nodes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rewriting/plan/stage_plan_rules.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"

namespace workbench {
namespace {

using tensorflow::AttrValue;
using tensorflow::DataTypeVector;
using tensorflow::Node;
using tensorflow::NodeDef;
using tensorflow::OutputTensor;
using Names = absl::flat_hash_set<std::string>;
using Record = std::vector<std::string>;

// What the ops of one buffer agree about. Those that neither put nor take have no dtypes.
constexpr const char* kAgreed[] = {"container", "shared_name", "capacity", "dtypes", "host_dtypes"};

absl::Status AddOwnNode(const NodeDef& planned, NamedGraph* graph, Names* added, Node** node) {
  NodeDef def = planned;
  def.clear_input();
  Node* old = graph->Find(def.name());
  const bool by_plan = !added->insert(def.name()).second;
  if (old == nullptr) return graph->Add(std::move(def), node);
  if (by_plan) {
    return RefusedPlan(absl::StrCat("own node '", def.name(), "' has the name of a copy"));
  }
  if (old->type_string() != kPutOp || def.op() != kPutOp) {
    return RefusedPlan(absl::StrCat("own node '", def.name(), "', a ", def.op(),
                                    ", has the name of a ", old->type_string(),
                                    " of the session's graph"));
  }
  return graph->Replace(old, std::move(def), node);
}

absl::Status RequireDtypes(const std::vector<Node*>& carried, const Node& take) {
  DataTypeVector record;
  for (const Node* node : carried) {
    record.insert(record.end(), node->output_types().begin(), node->output_types().end());
  }
  if (record == take.output_types()) return absl::OkStatus();
  return RefusedPlan(absl::StrCat("take '", take.name(), "' delivers [",
                                  tensorflow::DataTypeVectorString(take.output_types()),
                                  "]; the outputs of the carried nodes are [",
                                  tensorflow::DataTypeVectorString(record), "]"));
}

// Input 0 of a put is its owner.
absl::Status RequireRecord(const Node& put, const std::vector<Record>& records) {
  const std::vector<OutputTensor> inputs = InputsOf(put).data;
  Record found;
  for (size_t i = 1; i < inputs.size(); ++i) {
    found.push_back(absl::StrCat(inputs[i].node->name(), ":", inputs[i].index));
  }
  if (std::find(records.begin(), records.end(), found) != records.end()) return absl::OkStatus();
  if (records.size() == 1 && records[0].size() == found.size()) {
    const auto [one, other] = std::mismatch(found.begin(), found.end(), records[0].begin());
    return RefusedPlan(absl::StrCat("put '", put.name(), "' puts '", *one, "' as tensor ",
                                    one - found.begin(), " of its record; expected '", *other,
                                    "'"));
  }
  return RefusedPlan(absl::StrCat("put '", put.name(), "' puts ", found.size(),
                                  " tensors, which are not what any of the ", records.size(),
                                  " copies makes of the carried nodes"));
}

absl::Status RequireSameBuffer(const Node& node, const Node& take) {
  for (const char* key : kAgreed) {
    const AttrValue* one = node.attrs().Find(key);
    const AttrValue* other = take.attrs().Find(key);
    if (one == nullptr || tensorflow::AreAttrValuesEqual(*one, *other)) continue;
    return RefusedPlan(absl::StrCat("'", node.name(), "' has ", key, " ",
                                    tensorflow::SummarizeAttrValue(*one), ", take '", take.name(),
                                    "' ", tensorflow::SummarizeAttrValue(*other),
                                    "; the ops of one buffer agree about it"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RefusedPlan(const std::string& text) {
  return absl::InvalidArgumentError(
      absl::StrCat(text, "; make the plan from the graph that the session runs"));
}

absl::Status ConnectByName(const NodeDef& def, Node* node, NamedGraph* graph) {
  NodeInputs inputs;
  for (const std::string& input : def.input()) {
    if (!absl::StartsWith(input, "^")) {
      const absl::Status status = graph->FindTensor(input, &inputs.data.emplace_back());
      if (!status.ok()) {
        return RefusedPlan(absl::StrCat("node '", def.name(), "' reads what it cannot: ",
                                        status.message()));
      }
      continue;
    }
    Node* before = graph->Find(absl::string_view(input).substr(1));
    if (before == nullptr) {
      return RefusedPlan(absl::StrCat("node '", def.name(), "' waits for '", input,
                                      "', which is not in the session's graph"));
    }
    inputs.control.push_back(before);
  }
  return graph->Connect(node, inputs);
}

absl::Status AddOwnNodes(const PlannedStage& stage, NamedGraph* graph, Names* added) {
  std::vector<Node*> nodes(stage.nodes.node_size(), nullptr);
  for (size_t i = 0; i < nodes.size(); ++i) {
    TF_RETURN_IF_ERROR(AddOwnNode(stage.nodes.node(i), graph, added, &nodes[i]));
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    TF_RETURN_IF_ERROR(ConnectByName(stage.nodes.node(i), nodes[i], graph));
    const absl::Status status = ValidateNodeDef(nodes[i]->def(), nodes[i]->op_def());
    if (!status.ok()) {
      return RefusedPlan(
          absl::StrCat("own node '", nodes[i]->name(), "' is malformed: ", status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRecord(const PlannedStage& stage, const std::vector<Node*>& carried,
                         const std::vector<Record>& records, const NamedGraph& graph) {
  const Node& take = *graph.Find(stage.take);
  TF_RETURN_IF_ERROR(RequireDtypes(carried, take));
  for (const NodeDef& def : stage.nodes.node()) {
    if (!absl::StartsWith(def.op(), kBufferOps)) continue;
    const Node& node = *graph.Find(def.name());
    TF_RETURN_IF_ERROR(RequireSameBuffer(node, take));
    if (def.op() == kPutOp) TF_RETURN_IF_ERROR(RequireRecord(node, records));
  }
  return absl::OkStatus();
}

}  // namespace workbench
