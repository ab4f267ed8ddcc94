// The graph pass that packs what travels between tasks, in sessions and calls of functions whose config
// asks for it. It sees each graph that is run, also that of a function, as TensorFlow is about to split
// it by tasks: placed, pruned, optimized.

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "registration/guarded_pass.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/public/session_options.h"
#include "transfers/pack_transfers.h"

namespace workbench {
namespace {

using tensorflow::Graph;
using Optimizer = tensorflow::RewriterConfig::CustomGraphOptimizer;

// In core/session/pack_transfers.py.
constexpr char kName[] = "WorkbenchPackTransfers";
constexpr int64_t kFormat = 1;
// After TensorFlow's own passes.
constexpr int kPackPhase = 100;

absl::Status LargestBytes(const Optimizer& asked, int64_t* bytes) {
  const auto& parameters = asked.parameter_map();
  const auto format = parameters.find("format"), largest = parameters.find("largest_bytes");
  if (format == parameters.end() || format->second.i() != kFormat || largest == parameters.end() ||
      largest->second.i() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "custom optimizer '", kName, "' is of another format than ", kFormat,
        ", or says no largest_bytes; make it by wb.cluster.pack_transfers of the version that is loaded"));
  }
  *bytes = largest->second.i();
  return absl::OkStatus();
}

class PackTransfersPass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override {
    if (options.session_options == nullptr || options.graph == nullptr ||
        *options.graph == nullptr) {
      return absl::OkStatus();
    }
    const auto& rewriting = options.session_options->config.graph_options().rewrite_options();
    for (const Optimizer& optimizer : rewriting.custom_optimizers()) {
      if (optimizer.name() != kName) continue;
      int64_t largest_bytes = 0;
      TF_RETURN_IF_ERROR(LargestBytes(optimizer, &largest_bytes));
      Graph* graph = options.graph->get();
      const auto* functions = options.flib_def != nullptr ? options.flib_def : &graph->flib_def();
      return PackTransfers(largest_bytes, *functions, graph);
    }
    return absl::OkStatus();
  }
};

REGISTER_OPTIMIZATION(tensorflow::OptimizationPassRegistry::POST_REWRITE_FOR_EXEC, kPackPhase,
                      GuardedPass<PackTransfersPass>);

}  // namespace
}  // namespace workbench
