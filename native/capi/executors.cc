// Executor types, learned costs and admission.

#include <cstdint>
#include <cstring>

#include "capi/export.h"
#include "executor/policies/executor.h"
#include "executor/scheduling/admission.h"
#include "executor/scheduling/cost_model.h"

using workbench::CostModel;
using workbench::StepAdmission;

// The name of the executor type with these settings; lives for ever.
WORKBENCH_EXPORT const char* workbench_cost_model_type(int64_t start_step, int64_t stop_step,
                                                       int64_t batch_ns, int64_t batch_ops) {
  return workbench::CostModelExecutorType({start_step, stop_step, batch_ns, batch_ops}).c_str();
}

WORKBENCH_EXPORT char* workbench_learned_costs() { return strdup(CostModel::Table().c_str()); }
WORKBENCH_EXPORT void workbench_preload_costs(const char* lines) { CostModel::Preload(lines); }
WORKBENCH_EXPORT void workbench_relearn() { CostModel::RelearnAll(); }

// Of steps that run on the threads of their callers: how often a client asked for a slot, and how
// often one kept its slot between two calls.
WORKBENCH_EXPORT int64_t workbench_turns_asked() { return StepAdmission::Get().requests(); }
WORKBENCH_EXPORT int64_t workbench_turns_kept() { return StepAdmission::Get().kept(); }
