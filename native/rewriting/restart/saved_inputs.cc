#include "rewriting/restart/saved_inputs.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rewriting/restart/initializers.h"

namespace workbench {
namespace {

using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeDef;
using tensorflow::OutputTensor;

constexpr char kSerializeOp[] = "SerializeIterator";
constexpr char kDeserializeOp[] = "DeserializeIterator";
// Of the op that has given its name away.
constexpr char kStockName[] = "stock";

// The stages that read a handle, those behind others first: what these deliver must still come while
// the others are held.
std::vector<const GraphStage*> StagesThatRead(const Node& handle, const GraphStages& stages) {
  std::vector<const GraphStage*> found;
  for (const auto& [buffer, stage] : stages) {
    if (stage.before.count(handle.id()) > 0) found.push_back(&stage);
  }
  std::stable_sort(found.begin(), found.end(), [](const GraphStage* one, const GraphStage* other) {
    return one->depth > other->depth;
  });
  return found;
}

void SetStages(const std::vector<const GraphStage*>& stages, NodeDef* def) {
  auto* names = (*def->mutable_attr())["stages"].mutable_list();
  for (const GraphStage* stage : stages) names->add_s(stage->name);
}

NodeDef OfBuffer(const char* op, const char* name, const GraphStage& stage,
                 const std::vector<std::string>& attrs) {
  NodeDef def;
  def.set_op(op);
  def.set_name(name);
  CopyBufferAttrs(stage, attrs, &def);
  return def;
}

// Another node like `node`, without inputs.
absl::Status AddStock(const Node& node, Graph* graph, NamedGraph* named, Node** stock) {
  NodeDef def = node.def();
  def.clear_input();
  def.set_name(kStockName);
  return AddBeside(node, std::move(def), graph, named, stock);
}

// A node in the place of `old`, by its name.
NodeDef InPlaceOf(const Node& old, const char* op) {
  NodeDef def;
  def.set_op(op);
  def.set_name(old.name());
  def.set_device(old.requested_device());
  const auto group = old.def().attr().find(tensorflow::kColocationAttrName);
  if (group != old.def().attr().end()) {
    (*def.mutable_attr())[tensorflow::kColocationAttrName] = group->second;
  }
  return def;
}

absl::Status AddCheck(Node* save, const std::vector<const GraphStage*>& readers, Graph* graph,
                      NamedGraph* named, Node** check) {
  NodeInputs inputs = InputsOf(*save);
  inputs.data = {inputs.data[HandleOfSave(save->type_string())]};
  NodeDef def = OpOnHandle(kInputSaveOp, "check", *save, inputs.data[0]);
  (*def.mutable_attr())["saves"].set_s(save->name());
  SetStages(readers, &def);
  TF_RETURN_IF_ERROR(AddBeside(*save, std::move(def), graph, named, check));
  return named->Connect(*check, inputs);
}

absl::Status SaveHeld(Node* save, const std::vector<const GraphStage*>& readers, Node* check,
                      Graph* graph, NamedGraph* named) {
  NodeInputs inputs = InputsOf(*save);
  Node* last = check;
  for (const GraphStage* stage : readers) {
    Node* hold = nullptr;
    TF_RETURN_IF_ERROR(AddBeside(*stage->puts.front(),
                                 OfBuffer("WorkbenchBufferHold", "hold", *stage, {"timeout_millis"}),
                                 graph, named, &hold));
    TF_RETURN_IF_ERROR(named->Connect(hold, {{}, {last}}));
    last = hold;
  }
  inputs.control.push_back(last);
  Node* stock = nullptr;
  TF_RETURN_IF_ERROR(AddStock(*save, graph, named, &stock));
  TF_RETURN_IF_ERROR(named->Connect(stock, inputs));
  NodeInputs parts = {{{stock, 0}}, {}};
  for (const GraphStage* stage : readers) {
    Node* held = nullptr;
    TF_RETURN_IF_ERROR(
        AddBeside(*stage->puts.front(),
                  OfBuffer("WorkbenchBufferHeld", "held", *stage, {"dtypes", "host_dtypes"}), graph,
                  named, &held));
    TF_RETURN_IF_ERROR(named->Connect(held, {{}, {stock}}));
    parts.data.push_back({held, 0});
  }
  NodeDef def = InPlaceOf(*save, "WorkbenchInputState");
  (*def.mutable_attr())["N"].set_i(static_cast<int64_t>(readers.size()));
  Node* state = nullptr;
  TF_RETURN_IF_ERROR(named->Replace(save, std::move(def), &state));
  return named->Connect(state, parts);
}

absl::Status RestoreInput(Node* restore, const GraphStages& stages, Graph* graph,
                          NamedGraph* named) {
  NodeInputs inputs = InputsOf(*restore);
  const OutputTensor saved = inputs.data[1];
  const auto readers = StagesThatRead(*inputs.data[0].node, stages);
  NodeDef def;
  def.set_op("WorkbenchInputStateOnly");
  def.set_name("state");
  SetStages(readers, &def);
  Node* state = nullptr;
  TF_RETURN_IF_ERROR(AddBeside(*restore, std::move(def), graph, named, &state));
  TF_RETURN_IF_ERROR(named->Connect(state, {{saved}, {}}));
  if (readers.empty()) return graph->UpdateEdge(state, 0, restore, 1);
  inputs.data[1] = {state, 0};
  Node* stock = nullptr;
  TF_RETURN_IF_ERROR(AddStock(*restore, graph, named, &stock));
  TF_RETURN_IF_ERROR(named->Connect(stock, inputs));
  std::vector<Node*> preloads;
  for (const GraphStage* stage : readers) {
    Node* preload = nullptr;
    TF_RETURN_IF_ERROR(AddBeside(
        *stage->puts.front(),
        OfBuffer("WorkbenchBufferPreload", "preload", *stage, {"dtypes", "host_dtypes"}), graph,
        named, &preload));
    TF_RETURN_IF_ERROR(named->Connect(preload, {{saved}, {stock}}));
    TF_RETURN_IF_ERROR(AddWatch(*stage, {preload}, graph, named));
    preloads.push_back(preload);
  }
  Node* restored = nullptr;
  TF_RETURN_IF_ERROR(named->Replace(restore, InPlaceOf(*restore, "NoOp"), &restored));
  return named->Connect(restored, {{}, preloads});
}

std::vector<Node*> Outside(const Ids& staged, const Graph& graph, bool (*is_it)(const Node&)) {
  std::vector<Node*> nodes;
  for (Node* node : graph.op_nodes()) {
    if (is_it(*node) && staged.count(node->id()) == 0) nodes.push_back(node);
  }
  return nodes;
}

}  // namespace

absl::Status SaveInputs(const GraphStages& stages, const Ids& staged, Graph* graph,
                        NamedGraph* named) {
  const auto saves = Outside(staged, *graph, [](const Node& node) {
    return HandleOfSave(node.type_string()) >= 0;
  });
  for (Node* save : saves) {
    std::vector<const GraphStage*> readers;
    if (save->type_string() == kSerializeOp) {
      readers = StagesThatRead(*InputsOf(*save).data[0].node, stages);
    }
    Node* check = nullptr;
    TF_RETURN_IF_ERROR(AddCheck(save, readers, graph, named, &check));
    if (readers.empty()) {
      graph->AddControlEdge(check, save);
    } else {
      TF_RETURN_IF_ERROR(SaveHeld(save, readers, check, graph, named));
    }
  }
  return absl::OkStatus();
}

absl::Status RestoreInputs(const GraphStages& stages, const Ids& staged, Graph* graph,
                           NamedGraph* named) {
  const auto restores = Outside(
      staged, *graph, [](const Node& node) { return node.type_string() == kDeserializeOp; });
  for (Node* restore : restores) {
    TF_RETURN_IF_ERROR(RestoreInput(restore, stages, graph, named));
  }
  return absl::OkStatus();
}

}  // namespace workbench
