// The graph pass that makes the choices of a run: it sees the run's graph with what is fed and
// fetched, once TensorFlow has optimized it.

#include <string>

#include "registration/guarded_pass.h"
#include "rewriting/choice/fed_apart.h"
#include "rewriting/choice/make_choices.h"
#include "rewriting/choice/run_ends.h"
#include "rewriting/plan/stage_plan.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/public/session_options.h"

namespace workbench {
namespace {

using tensorflow::OptimizationPassRegistry;

// Before all others: none knows a choice.
constexpr int kChoicePhase = 0;

class MakeChoicesPass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override {
    if (options.session_options == nullptr || options.graph == nullptr ||
        *options.graph == nullptr || options.is_function_graph || !HasChoices(**options.graph)) {
      return absl::OkStatus();
    }
    const auto& rewriting = options.session_options->config.graph_options().rewrite_options();
    StagePlan plan;
    for (const auto& optimizer : rewriting.custom_optimizers()) {
      if (optimizer.name() == kPlanName) TF_RETURN_IF_ERROR(ParseStagePlan(optimizer, &plan));
    }
    std::string reason = ShowInputs(options.graph->get());
    if (reason.empty()) reason = NeedsStock(plan, **options.graph);
    if (!reason.empty()) VLOG(1) << "A run has the graph as it was without the plan: " << reason;
    return MakeChoices(!reason.empty(), options.graph->get());
  }
};

REGISTER_OPTIMIZATION(OptimizationPassRegistry::POST_REWRITE_FOR_EXEC, kChoicePhase,
                      GuardedPass<MakeChoicesPass>);

}  // namespace
}  // namespace workbench
