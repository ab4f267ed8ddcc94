#include "rewriting/choice/make_choices.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "rewriting/choice/add_choices.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/algorithm.h"

namespace workbench {
namespace {

using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeDef;
using tensorflow::OutputTensor;

bool IsChoice(const Node& node) {
  return node.type_string() == kChoiceOp || node.type_string() == kChoiceRefOp;
}

bool IsWait(const Node& node) { return node.type_string() == kChoiceWaitOp; }

bool HasReader(const Node& node) {
  const auto& edges = node.out_edges();
  return std::any_of(edges.begin(), edges.end(),
                     [](const Edge* edge) { return edge->dst()->IsOp(); });
}

bool IsFetched(const Node& node) {
  const auto& edges = node.out_edges();
  return !HasReader(node) || std::any_of(edges.begin(), edges.end(), [](const Edge* edge) {
    return edge->dst()->IsRetval() || edge->dst()->IsSend();
  });
}

bool IsRewritten(const Node& wait) {
  bool rewritten = false;
  return tensorflow::TryGetNodeAttr(wait.attrs(), "rewritten", &rewritten) && rewritten;
}

struct Use {
  Node* node;
  int output, input;
};

std::vector<Use> UsesOf(const Node& node) {
  std::vector<Use> uses;
  for (const Edge* edge : node.out_edges()) {
    if (!edge->IsControlEdge()) uses.push_back({edge->dst(), edge->src_output(), edge->dst_input()});
  }
  return uses;
}

class ChoiceMaker {
 public:
  ChoiceMaker(bool stock, Graph* graph) : stock_(stock), graph_(*graph) {}

  absl::Status Run() {
    std::vector<Node*> choices, waits;
    for (Node* node : graph_.op_nodes()) {
      if (IsChoice(*node)) choices.push_back(node);
      if (IsWait(*node)) waits.push_back(node);
    }
    for (Node* wait : waits) MakeWaits(wait);
    // A run needs each node of its graph: one that nothing reads is what it asks for.
    absl::flat_hash_set<const Node*> asked;
    for (const Node* choice : choices) {
      if (!HasReader(*choice)) asked.insert(choice);
    }
    for (Node* choice : choices) {
      const bool is_target = asked.contains(choice);
      Node* taken = nullptr;
      TF_RETURN_IF_ERROR(MakeTensors(choice, &taken));
      if (is_target && IsChoice(*taken)) {
        asked.insert(taken);
      } else if (is_target) {
        targets_.insert(taken->id());
      } else {
        unneeded_.push_back(taken->id());
      }
    }
    RemoveUnneeded();
    tensorflow::FixupSourceAndSinkEdges(&graph_);
    return absl::OkStatus();
  }

 private:
  // What waits with the branch that is taken waits for what that waits for.
  void MakeWaits(Node* wait) {
    std::vector<Node*> before, behind;
    for (const Edge* edge : wait->in_edges()) {
      if (edge->src()->IsOp()) before.push_back(edge->src());
    }
    for (const Edge* edge : wait->out_edges()) {
      if (edge->dst()->IsOp()) behind.push_back(edge->dst());
    }
    for (Node* node : before) unneeded_.push_back(node->id());
    if (IsRewritten(*wait) != stock_) {
      for (Node* reader : behind) {
        for (Node* node : before) graph_.AddControlEdge(node, reader);
      }
    }
    graph_.RemoveNode(wait);
  }

  // What the end of a branch is given, and waits for.
  void Pass(const Node& end, std::vector<OutputTensor>* taken, std::vector<Node*>* waits) {
    for (const Edge* edge : end.in_edges()) {
      if (!edge->IsControlEdge()) {
        (*taken)[edge->dst_input()] = {edge->src(), edge->src_output()};
        unneeded_.push_back(edge->src()->id());
      } else if (edge->src()->IsOp()) {
        waits->push_back(edge->src());
      }
    }
  }

  static std::vector<Node*> WaitsOf(const Node& choice) {
    std::vector<Node*> waits;
    for (const Edge* edge : choice.in_edges()) {
      if (edge->IsControlEdge() && edge->src()->IsOp()) waits.push_back(edge->src());
    }
    return waits;
  }

  absl::Status MakeTensors(Node* choice, Node** node) {
    const int count = choice->num_outputs();
    std::vector<OutputTensor> taken(count);
    for (const Edge* edge : choice->in_edges()) {
      if (edge->IsControlEdge()) continue;
      const int place = edge->dst_input() - (stock_ ? 0 : count);
      if (place >= 0 && place < count) taken[place] = {edge->src(), edge->src_output()};
      unneeded_.push_back(edge->src()->id());
    }
    std::vector<Node*> waits = WaitsOf(*choice);
    // The ends of the branches are taken out as well.
    if (taken[0].node->type_string() == kBranchOp) Pass(*taken[0].node, &taken, &waits);
    std::vector<Node*> readers;
    for (const Edge* edge : choice->out_edges()) {
      if (edge->IsControlEdge() && edge->dst()->IsOp()) readers.push_back(edge->dst());
    }
    const bool is_named =
        taken[0].node->name() == absl::StrCat(stock_ ? kStock : kRewritten, choice->name());
    // TensorFlow's optimizer may have moved waits of a branch to the choice, or have left out a node
    // of which a run asks for what it gives: that is to be on the node's device, under its name.
    if (!waits.empty() || (!is_named && IsFetched(*choice))) {
      return HandOn(choice, taken, waits, readers, node);
    }
    const std::vector<Use> uses = UsesOf(*choice);
    const std::string name = choice->name();
    graph_.RemoveNode(choice);
    for (const Use& use : uses) {
      graph_.AddEdge(taken[use.output].node, taken[use.output].index, use.node, use.input);
    }
    for (Node* reader : readers) graph_.AddControlEdge(taken[0].node, reader);
    *node = taken[0].node;
    if (is_named) (*node)->set_name(name);
    return absl::OkStatus();
  }

  absl::Status HandOn(Node* choice, const std::vector<OutputTensor>& taken,
                      const std::vector<Node*>& waits, const std::vector<Node*>& readers,
                      Node** node) {
    NodeDef def;
    def.set_name(choice->name());
    if (choice->type_string() == kChoiceRefOp) {
      def.set_op("RefIdentity");
      tensorflow::AddNodeAttr("T", tensorflow::RemoveRefType(choice->output_type(0)), &def);
    } else if (taken.size() == 1) {
      def.set_op("Identity");
      tensorflow::AddNodeAttr("T", choice->output_type(0), &def);
    } else {
      def.set_op("IdentityN");
      tensorflow::AddNodeAttr("T", choice->output_types(), &def);
    }
    return Replace(choice, std::move(def), taken, waits, readers, node);
  }

  absl::Status Replace(Node* choice, NodeDef def, const std::vector<OutputTensor>& taken,
                       const std::vector<Node*>& waits, const std::vector<Node*>& readers,
                       Node** made) {
    for (const OutputTensor& tensor : taken) {
      Graph::AddInput(&def, tensor.node->name(), tensor.index);
    }
    absl::StatusOr<Node*> added = graph_.AddNode(std::move(def));
    if (!added.ok()) return added.status();
    Node* node = *made = *added;
    node->set_assigned_device_name(choice->assigned_device_name());
    node->set_requested_device(choice->requested_device());
    const std::vector<Use> uses = UsesOf(*choice);
    graph_.RemoveNode(choice);
    for (size_t i = 0; i < taken.size(); ++i) {
      graph_.AddEdge(taken[i].node, taken[i].index, node, static_cast<int>(i));
    }
    for (Node* before : waits) graph_.AddControlEdge(before, node);
    for (const Use& use : uses) graph_.AddEdge(node, use.output, use.node, use.input);
    for (Node* reader : readers) graph_.AddControlEdge(node, reader);
    return absl::OkStatus();
  }

  // The branches that are not taken, and what they alone needed. None of these is a tensor that a
  // run asks for: a choice has the name of what it stands for.
  void RemoveUnneeded() {
    while (!unneeded_.empty()) {
      Node* node = graph_.FindNodeId(unneeded_.back());
      unneeded_.pop_back();
      if (node == nullptr || targets_.contains(node->id()) || HasReader(*node)) continue;
      if (node->IsRetval() || node->IsSend()) continue;
      for (const Edge* edge : node->in_edges()) {
        if (edge->src()->IsOp()) unneeded_.push_back(edge->src()->id());
      }
      graph_.RemoveNode(node);
    }
  }

  const bool stock_;
  Graph& graph_;
  std::vector<int> unneeded_;             // Ids of nodes that may be.
  absl::flat_hash_set<int> targets_;      // Ids of nodes that the run asks for.
};

}  // namespace

bool HasChoices(const Graph& graph) {
  for (const Node* node : graph.op_nodes()) {
    if (IsChoice(*node) || IsWait(*node)) return true;
  }
  return false;
}

absl::Status MakeChoices(bool stock, Graph* graph) { return ChoiceMaker(stock, graph).Run(); }

}  // namespace workbench
