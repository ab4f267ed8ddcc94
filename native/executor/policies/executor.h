#ifndef WORKBENCH_EXECUTOR_POLICIES_EXECUTOR_H_
#define WORKBENCH_EXECUTOR_POLICIES_EXECUTOR_H_

#include <string>

#include "absl/status/status.h"
#include "executor/scheduling/cost_model.h"

namespace workbench {

// Executor types that this library registers when it is loaded.
constexpr char kNormalExecutor[] = "WORKBENCH_NORMAL";
constexpr char kInlineExecutor[] = "WORKBENCH_INLINE";
constexpr char kCostModelExecutor[] = "WORKBENCH_COST_MODEL";
// TensorFlow's own executor, with the intra-op pool of the thread that starts a step.
constexpr char kStockExecutor[] = "WORKBENCH_STOCK";

// The name of the cost-model type with these settings; registers the type if it is new.
const std::string& CostModelExecutorType(const CostModel::Settings& settings);

// Registers a cost-model type that another process has named. Other types are registered already.
absl::Status RegisterExecutorType(const std::string& type);

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_POLICIES_EXECUTOR_H_
