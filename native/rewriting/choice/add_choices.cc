#include "rewriting/choice/add_choices.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rewriting/graph/same_nodes.h"
#include "rewriting/stages/stage_nodes.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"

namespace workbench {
namespace {

using tensorflow::Node;
using tensorflow::NodeDef;

bool IsWait(const std::string& input) { return absl::StartsWith(input, "^"); }

class Choices {
 public:
  explicit Choices(NamedGraph* graph) : graph_(graph) {}

  absl::Status Add(const NodeDef& original) {
    Node* node = graph_->Find(original.name());
    if (node == nullptr) {
      return RefusedPlan(
          absl::StrCat("replaced node '", original.name(), "' is not in the session's graph"));
    }
    const NodeDef now = DefinitionOf(*node);
    if (SameButForWaits(original, now)) {
      return SameWaits(original, now) ? absl::OkStatus() : ChooseWaits(node, original, now);
    }
    return node->num_outputs() == 0 ? ChooseEffect(node, original, now)
                                    : ChooseTensors(node, original, now);
  }

  // Nodes are found by name, so that each reads the choices that have come meanwhile.
  absl::Status Connect() {
    for (const NodeDef& def : pending_) {
      TF_RETURN_IF_ERROR(ConnectByName(def, graph_->Find(def.name()), graph_));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status AddNode(NodeDef def, Node** node) {
    pending_.push_back(def);
    def.clear_input();
    return graph_->Add(std::move(def), node);
  }

  absl::Status ReplaceNode(Node* old, NodeDef def) {
    pending_.push_back(def);
    def.clear_input();
    Node* node = nullptr;
    return graph_->Replace(old, std::move(def), &node);
  }

  // Has `to` wait for a node of its own that waits for what `from` waits for.
  //
  // TensorFlow's optimizer takes out a wait for what a node depends on anyway; it does not know
  // that what comes by the other branch of a choice does not count.
  absl::Status AddWait(const NodeDef& from, bool rewritten, NodeDef* to) {
    NodeDef def;
    def.set_name(WaitName(from.name(), rewritten));
    def.set_op(kChoiceWaitOp);
    def.set_device(from.device());
    tensorflow::AddNodeAttr("rewritten", rewritten, &def);
    for (const std::string& input : from.input()) {
      if (IsWait(input)) def.add_input(input);
    }
    if (def.input().empty()) return absl::OkStatus();
    to->add_input(absl::StrCat("^", def.name()));
    Node* node = nullptr;
    return AddNode(std::move(def), &node);
  }

  static NodeDef WithoutWaits(const NodeDef& from) {
    NodeDef def = from;
    def.clear_input();
    for (const std::string& input : from.input()) {
      if (!IsWait(input)) def.add_input(input);
    }
    return def;
  }

  absl::Status ChooseWaits(Node* node, const NodeDef& original, const NodeDef& now) {
    NodeDef waiting = WithoutWaits(now);
    TF_RETURN_IF_ERROR(AddWait(original, /*rewritten=*/false, &waiting));
    TF_RETURN_IF_ERROR(AddWait(now, /*rewritten=*/true, &waiting));
    return ReplaceNode(node, std::move(waiting));
  }

  // A node of the branch, under a name of its own.
  absl::Status AddBranch(const NodeDef& from, bool rewritten, Node** node) {
    NodeDef def = WithoutWaits(from);
    def.set_name(absl::StrCat(rewritten ? kRewritten : kStock, from.name()));
    TF_RETURN_IF_ERROR(AddWait(from, rewritten, &def));
    return AddNode(std::move(def), node);
  }

  absl::Status ChooseEffect(Node* node, const NodeDef& original, const NodeDef& now) {
    NodeDef done;
    done.set_name(original.name());
    done.set_op("NoOp");
    done.set_device(now.device());
    for (const auto& [from, rewritten] : {std::pair(&original, false), std::pair(&now, true)}) {
      NodeDef after = *from;
      if (from->op() != "NoOp") {
        Node* branch = nullptr;
        NodeDef effect = *from;
        effect.set_name(absl::StrCat("effect/", from->name()));
        TF_RETURN_IF_ERROR(AddBranch(effect, rewritten, &branch));
        after.clear_input();
        after.add_input(absl::StrCat("^", branch->name()));
      }
      TF_RETURN_IF_ERROR(AddWait(after, rewritten, &done));
    }
    return ReplaceNode(node, std::move(done));
  }

  absl::Status ChooseTensors(Node* node, const NodeDef& original, const NodeDef& now) {
    Node* own = nullptr;
    Node* rewritten = nullptr;
    TF_RETURN_IF_ERROR(AddBranch(original, /*rewritten=*/false, &own));
    TF_RETURN_IF_ERROR(AddBranch(now, /*rewritten=*/true, &rewritten));
    NodeDef choice;
    choice.set_name(original.name());
    choice.set_device(now.device());
    const bool is_ref = tensorflow::IsRefType(own->output_type(0));
    choice.set_op(is_ref ? kChoiceRefOp : kChoiceOp);
    if (is_ref) {
      tensorflow::AddNodeAttr("T", tensorflow::RemoveRefType(own->output_type(0)), &choice);
    } else {
      tensorflow::AddNodeAttr("T", own->output_types(), &choice);
    }
    const auto group = original.attr().find(tensorflow::kColocationAttrName);
    if (group != original.attr().end()) {
      (*choice.mutable_attr())[tensorflow::kColocationAttrName] = group->second;
    }
    for (const bool is_rewritten : {false, true}) {
      NodeDef branch;
      branch.set_name(BranchName(choice.name(), is_rewritten));
      branch.set_op(kBranchOp);
      branch.set_device(now.device());
      if (!is_ref) tensorflow::AddNodeAttr("T", own->output_types(), &branch);
      for (int i = 0; i < own->num_outputs(); ++i) {
        // A plan's node gives what the plan needs; the rest is the user's node's in any case.
        const Node* from = is_rewritten && i < node->num_outputs() ? rewritten : own;
        (is_ref ? choice : branch).add_input(absl::StrCat(from->name(), ":", i));
        if (!is_ref) choice.add_input(absl::StrCat(branch.name(), ":", i));
      }
      if (is_ref) continue;
      Node* end = nullptr;
      TF_RETURN_IF_ERROR(AddNode(std::move(branch), &end));
    }
    return ReplaceNode(node, std::move(choice));
  }

  NamedGraph* const graph_;
  std::vector<NodeDef> pending_;
};

}  // namespace

std::string WaitName(const std::string& node, bool rewritten) {
  return absl::StrCat(rewritten ? kRewritten : kStock, "waits/", node);
}

std::string BranchName(const std::string& node, bool rewritten) {
  return absl::StrCat(rewritten ? kRewritten : kStock, "branch/", node);
}

bool IsOfBranch(const tensorflow::Edge& edge, bool rewritten) {
  const Node& choice = *edge.dst();
  const std::string& op = choice.type_string();
  if (edge.src()->type_string() == kChoiceWaitOp) {
    bool of_plan = false;
    return tensorflow::TryGetNodeAttr(edge.src()->attrs(), "rewritten", &of_plan) &&
           of_plan == rewritten;
  }
  if (edge.IsControlEdge() || (op != kChoiceOp && op != kChoiceRefOp)) return false;
  return (edge.dst_input() >= choice.num_outputs()) == rewritten;
}

absl::Status AddChoices(const std::vector<NodeDef>& originals, NamedGraph* graph) {
  Choices choices(graph);
  for (const NodeDef& original : originals) TF_RETURN_IF_ERROR(choices.Add(original));
  return choices.Connect();
}

}  // namespace workbench
