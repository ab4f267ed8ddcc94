// The graph pass that applies the stage plan which a session's config carries, and lets stages
// begin again with their input. It decides nothing.

#include "absl/strings/str_cat.h"
#include "registration/guarded_pass.h"
#include "rewriting/stages/apply_stage_plan.h"
#include "rewriting/plan/stage_plan.h"
#include "rewriting/restart/restart_stages.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/public/session_options.h"

namespace workbench {
namespace {

using tensorflow::GraphOptions;
using tensorflow::OptimizationPassRegistry;
using Optimizer = tensorflow::RewriterConfig::CustomGraphOptimizer;

// TensorFlow lowers cond and while_loop to other nodes in phase 10; a plan names the user's.
constexpr int kPlanPhase = 5;

// The session's plan; null when it has none.
absl::Status FindPlan(const GraphOptions& options, const Optimizer** plan) {
  *plan = nullptr;
  for (const Optimizer& optimizer : options.rewrite_options().custom_optimizers()) {
    if (optimizer.name() != kPlanName) continue;
    if (*plan != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("the session's config has more than one custom optimizer named '", kPlanName,
                       "'; put all stages into one plan"));
    }
    *plan = &optimizer;
  }
  if (*plan == nullptr || !options.place_pruned_graph()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the session's config has a stage plan and graph_options.place_pruned_graph, with which no "
      "pass sees the whole graph; unset place_pruned_graph");
}

class StagePlanPass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override {
    if (options.session_options == nullptr || options.graph == nullptr ||
        *options.graph == nullptr || options.is_function_graph) {
      return absl::OkStatus();
    }
    const Optimizer* found = nullptr;
    TF_RETURN_IF_ERROR(FindPlan(options.session_options->config.graph_options(), &found));
    if (found != nullptr) TF_RETURN_IF_ERROR(Apply(*found, options));
    return RestartStages(options);
  }

 private:
  static absl::Status Apply(const Optimizer& found,
                            const tensorflow::GraphOptimizationPassOptions& options) {
    const uint64_t start = tensorflow::Env::Default()->NowMicros();
    tensorflow::Graph* graph = options.graph->get();
    const int nodes = graph->num_op_nodes();
    StagePlan plan;
    TF_RETURN_IF_ERROR(ParseStagePlan(found, &plan));
    TF_RETURN_IF_ERROR(ApplyStagePlan(plan, options.device_set, graph));
    VLOG(1) << "Applied " << plan.stages.size() << " planned stages to " << nodes
            << " nodes, which are " << graph->num_op_nodes() << " now, in "
            << (tensorflow::Env::Default()->NowMicros() - start) / 1000 << " ms";
    return absl::OkStatus();
  }
};

REGISTER_OPTIMIZATION(OptimizationPassRegistry::PRE_PLACEMENT, kPlanPhase, GuardedPass<StagePlanPass>);

}  // namespace
}  // namespace workbench
