// The master's pass of executor/server/partition.h, and one that names each session. Workers find
// the session's kernels by that name. TensorFlow's own handle of the session is in no pass.

#include <atomic>
#include <cstdint>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "executor/policies/executor.h"
#include "executor/server/partition.h"
#include "registration/guarded_pass.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/public/session_options.h"
#include "tsl/platform/random.h"

namespace workbench {
namespace {

using tensorflow::GraphOptimizationPassOptions;
using tensorflow::Node;
using tensorflow::OptimizationPassRegistry;
using tensorflow::SessionOptions;

// After TensorFlow's own passes.
constexpr int kMarkPhase = 1000;
// Between the executor's type and the session's name.
constexpr char kNamed = '#';

// Whether workers run the session's graphs, and one of this library's policies is asked for.
bool AsksForPolicy(const GraphOptimizationPassOptions& options) {
  if (options.session_options == nullptr || options.session_options->target.empty()) return false;
  const std::string& type = options.session_options->config.experimental().executor_type();
  return absl::StartsWith(type, kInlineExecutor) || absl::StartsWith(type, kNormalExecutor) ||
         absl::StartsWith(type, kCostModelExecutor);
}

// A name that no other session has, of this master or another one.
std::string NewName() {
  static const uint64_t process = tsl::random::New64();
  static std::atomic<int64_t> next{0};
  return absl::StrCat("workbench-", absl::Hex(process, absl::kZeroPad16), "-", next++);
}

// Runs as a session is made, and again when its graph is extended.
class SessionNamePass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const GraphOptimizationPassOptions& options) override {
    if (!AsksForPolicy(options) || options.is_function_graph) return absl::OkStatus();
    // The master session's own copy, which lasts as long as the session and is no constant. Another
    // session may later lie at the same address, so nothing that is kept elsewhere tells them apart.
    auto* session = const_cast<SessionOptions*>(options.session_options);
    std::string* type = session->config.mutable_experimental()->mutable_executor_type();
    if (!absl::StrContains(*type, kNamed)) absl::StrAppend(type, std::string(1, kNamed), NewName());
    return absl::OkStatus();
  }
};

class MarkPass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const GraphOptimizationPassOptions& options) override {
    if (options.graph == nullptr || *options.graph == nullptr || options.is_function_graph ||
        !AsksForPolicy(options)) {
      return absl::OkStatus();
    }
    const auto& config = options.session_options->config;
    // TensorFlow's cost graph is of the nodes that its own executor runs.
    if (config.graph_options().build_cost_model() > 0) return absl::OkStatus();
    const std::string& named = config.experimental().executor_type();
    const size_t end = named.find(kNamed);
    if (end == std::string::npos) return absl::OkStatus();
    const std::string optimizer = config.graph_options().optimizer_options().SerializeAsString();
    std::set<std::string> marked;
    for (Node* node : (*options.graph)->op_nodes()) {
      if (!marked.insert(node->assigned_device_name()).second) continue;
      node->AddAttr(kMarkedExecutor, named.substr(0, end));
      node->AddAttr(kMarkedSession, named.substr(end + 1));
      node->AddAttr(kMarkedOptimizer, optimizer);
    }
    return absl::OkStatus();
  }
};

REGISTER_OPTIMIZATION(OptimizationPassRegistry::PRE_PLACEMENT, 0, GuardedPass<SessionNamePass>);
REGISTER_OPTIMIZATION(OptimizationPassRegistry::POST_REWRITE_FOR_EXEC, kMarkPhase,
                      GuardedPass<MarkPass>);

}  // namespace
}  // namespace workbench
