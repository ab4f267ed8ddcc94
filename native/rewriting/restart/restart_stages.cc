#include "rewriting/restart/restart_stages.h"

#include <utility>
#include <vector>

#include "rewriting/graph/named_graph.h"
#include "rewriting/restart/graph_stages.h"
#include "rewriting/restart/initializers.h"
#include "rewriting/restart/restart_in_functions.h"
#include "rewriting/restart/saved_inputs.h"
#include "rewriting/restart/source_reads.h"
#include "tensorflow/core/graph/algorithm.h"

namespace workbench {
namespace {

using tensorflow::Node;

// The restart comes when the initializer could: where a branch is not taken, neither does.
absl::Status AddRestart(Node* initializer, int handle, tensorflow::Graph* graph,
                        NamedGraph* named) {
  NodeInputs inputs = InputsOf(*initializer);
  inputs.data = {inputs.data[handle]};
  Node* restart = nullptr;
  TF_RETURN_IF_ERROR(AddBeside(
      *initializer, OpOnHandle(kInputRestartOp, "restart", *initializer, inputs.data[0]), graph,
      named, &restart));
  TF_RETURN_IF_ERROR(named->Connect(restart, inputs));
  graph->AddControlEdge(restart, initializer);
  return absl::OkStatus();
}

}  // namespace

absl::Status RestartStages(const tensorflow::GraphOptimizationPassOptions& options) {
  tensorflow::Graph* graph = options.graph->get();
  NamedGraph named(graph);
  GraphStages stages = FindStages(*graph, named);
  const bool several_tasks = HasSeveralTasks(options.device_set);
  if (stages.empty() && several_tasks) return absl::OkStatus();
  FollowTakes(graph, &stages);
  Ids staged;
  for (const auto& [buffer, stage] : stages) {
    staged.insert(stage.before.begin(), stage.before.end());
  }
  std::vector<std::pair<Node*, int>> initializers;
  for (Node* node : graph->op_nodes()) {
    const int handle = HandleOfInitializer(node->type_string());
    if (handle >= 0 && staged.count(node->id()) == 0) initializers.emplace_back(node, handle);
  }
  for (const auto& [initializer, handle] : initializers) {
    TF_RETURN_IF_ERROR(AddRestart(initializer, handle, graph, &named));
  }
  TF_RETURN_IF_ERROR(SaveInputs(stages, staged, graph, &named));
  TF_RETURN_IF_ERROR(RestoreInputs(stages, staged, graph, &named));
  for (const auto& [buffer, stage] : stages) {
    // A session that places pruned graphs has the puts alone in one, without the resume.
    const auto& nodes = stage.resumes.empty() ? stage.puts : stage.resumes;
    TF_RETURN_IF_ERROR(AddWatch(stage, nodes, graph, &named));
  }
  TF_RETURN_IF_ERROR(WatchSources(stages, several_tasks, graph, &named));
  TF_RETURN_IF_ERROR(RestartInFunctions(staged, graph, &named, options.flib_def));
  tensorflow::FixupSourceAndSinkEdges(graph);
  return absl::OkStatus();
}

}  // namespace workbench
