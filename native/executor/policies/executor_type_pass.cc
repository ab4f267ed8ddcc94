// Looks at the executor type that a session's config names, before TensorFlow looks it up: its own
// error repeats the name, however long, and Python's search for node names in that text takes time
// that grows with the square of its length.

#include <string>

#include "absl/strings/str_cat.h"
#include "executor/policies/executor.h"
#include "registration/guarded_pass.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/public/session_options.h"

namespace workbench {
namespace {

using tensorflow::OptimizationPassRegistry;

constexpr size_t kLongestType = 512;
constexpr size_t kShown = 60;

class ExecutorTypePass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override {
    if (options.session_options == nullptr) return absl::OkStatus();
    const std::string& type = options.session_options->config.experimental().executor_type();
    if (type.size() <= kLongestType) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "ConfigProto.experimental.executor_type has ", type.size(), " characters and begins with '",
        type.substr(0, kShown), "'; expected the name of an executor, of at most ", kLongestType,
        " characters, such as '", kNormalExecutor, "', '", kInlineExecutor,
        "', or '' for TensorFlow's own"));
  }
};

REGISTER_OPTIMIZATION(OptimizationPassRegistry::PRE_PLACEMENT, 0, GuardedPass<ExecutorTypePass>);

}  // namespace
}  // namespace workbench
