#include "executor/policies/executor.h"

#include <cinttypes>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "executor/policies/ordered/ordered_step.h"
#include "executor/policies/propagated/propagated_step.h"
#include "executor/step/executor_state.h"
#include "executor/step/intra_op_pool.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/executor_factory.h"

namespace workbench {
namespace {

using tensorflow::Executor;
using tensorflow::ExecutorFactory;
using tensorflow::Graph;
using tensorflow::LocalExecutorParams;

// An executor of any policy. Under inline a graph without control flow runs in a fixed order.
class PolicyExecutor : public Executor {
 public:
  PolicyExecutor(const std::string& type, ExecutorPolicy policy,
                 const CostModel::Settings& settings, const LocalExecutorParams& params)
      : state_(type, policy, settings, params) {}

  absl::Status Initialize(const Graph& graph) {
    TF_RETURN_IF_ERROR(state_.Initialize(graph));
    if (state_.policy() == ExecutorPolicy::kInline &&
        !state_.immutable_state().requires_control_flow_support()) {
      ordered_.emplace(state_, graph);
    }
    return absl::OkStatus();
  }

  absl::Status Run(const Args& given) override {
    const std::optional<Args> own = ArgsOnOwnPool(given);
    const Args& args = own ? *own : given;
    if (state_.policy() != ExecutorPolicy::kInline) return RunPropagated(state_, args, nullptr);
    Admission admission;
    return ordered_ ? ordered_->Run(args, &admission) : RunPropagated(state_, args, &admission);
  }

 private:
  // Both keep a copy of the args.
  void RunAsyncInternal(const Args& given, DoneCallback done) override {
    const std::optional<Args> own = ArgsOnOwnPool(given);
    const Args& args = own ? *own : given;
    if (ordered_) {
      ordered_->RunAsync(args, std::move(done));
    } else {
      RunPropagatedAsync(state_, args, std::move(done));
    }
  }

  ExecutorState state_;
  std::optional<OrderedSteps> ordered_;
};

class Factory : public ExecutorFactory {
 public:
  Factory(std::string type, ExecutorPolicy policy, const CostModel::Settings& settings)
      : type_(std::move(type)), policy_(policy), settings_(settings) {}

  absl::Status NewExecutor(const LocalExecutorParams& params, const Graph& graph,
                           std::unique_ptr<Executor>* made) override {
    auto executor = std::make_unique<PolicyExecutor>(type_, policy_, settings_, params);
    TF_RETURN_IF_ERROR(executor->Initialize(graph));
    *made = std::move(executor);
    return absl::OkStatus();
  }

 private:
  const std::string type_;
  const ExecutorPolicy policy_;
  const CostModel::Settings settings_;
};

void Register(const std::string& type, ExecutorPolicy policy, const CostModel::Settings& settings) {
  // TensorFlow keeps factories for ever.
  ExecutorFactory::Register(type, new Factory(type, policy, settings));
}

const bool kRegistered = [] {
  Register(kNormalExecutor, ExecutorPolicy::kNormal, {});
  Register(kInlineExecutor, ExecutorPolicy::kInline, {});
  Register(kCostModelExecutor, ExecutorPolicy::kCostModel, {});
  return true;
}();

}  // namespace

const std::string& CostModelExecutorType(const CostModel::Settings& settings) {
  static std::mutex* mu = new std::mutex();
  static auto* types = new std::set<std::string>();
  const std::string type = absl::StrCat(
      kCostModelExecutor, "(start=", settings.start_step, ",stop=", settings.stop_step,
      ",batch_ns=", settings.batch_ns, ",batch_ops=", settings.batch_ops, ")");
  std::lock_guard<std::mutex> lock(*mu);
  const auto [found, added] = types->insert(type);
  if (added) Register(type, ExecutorPolicy::kCostModel, settings);
  return *found;
}

absl::Status RegisterExecutorType(const std::string& type) {
  if (!absl::StartsWith(type, kCostModelExecutor) || type == kCostModelExecutor) {
    return absl::OkStatus();
  }
  const std::string format = absl::StrCat(
      kCostModelExecutor, "(start=%" SCNd64 ",stop=%" SCNd64 ",batch_ns=%" SCNd64 ",batch_ops=%" SCNd64 ")");
  CostModel::Settings settings;
  const int read = std::sscanf(type.c_str(), format.c_str(), &settings.start_step,
                               &settings.stop_step, &settings.batch_ns, &settings.batch_ops);
  if (read == 4 && CostModelExecutorType(settings) == type) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("no executor has the name '", type.substr(0, 100), "'"));
}

}  // namespace workbench
