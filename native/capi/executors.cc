// What Python calls of executors and their tracer, through ctypes. Texts are tables with tabs and a
// header line; workbench_free frees them.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>

#include "executor/scheduling/cost_model.h"
#include "executor/policies/executor.h"
#include "executor/scheduling/admission.h"
#include "tracing/op_events.h"

using workbench::CostModel;
using workbench::OpEvents;

namespace {

char* Copied(const std::string& text) { return strdup(text.c_str()); }

}  // namespace

extern "C" {

// The name of the executor type with these settings; lives for ever.
const char* workbench_cost_model_type(int64_t start_step, int64_t stop_step, int64_t batch_ns,
                                      int64_t batch_ops) {
  return workbench::CostModelExecutorType({start_step, stop_step, batch_ns, batch_ops}).c_str();
}

char* workbench_learned_costs() { return Copied(CostModel::Table()); }
void workbench_free(char* text) { std::free(text); }
void workbench_preload_costs(const char* lines) { CostModel::Give(lines); }
void workbench_relearn() { CostModel::RelearnAll(); }

// Of steps on the threads of their callers: how often they asked for a turn, and how often one was
// kept from one call to the next.
int64_t workbench_turns_asked() { return workbench::Turns::Get().asked(); }
int64_t workbench_turns_kept() { return workbench::Turns::Get().kept(); }

void workbench_trace_ops(int on) { OpEvents::Get().Record(on != 0); }
int64_t workbench_traced_ops() { return OpEvents::Get().ready(); }
int64_t workbench_traced_steps() { return OpEvents::Get().ended_runs(); }
int64_t workbench_lost_ops() { return OpEvents::Get().lost(); }

int64_t workbench_take_ops(int64_t most, int64_t* scheduled_ns, int64_t* start_ns, int64_t* end_ns,
                           int64_t* step, int32_t* node, int32_t* thread) {
  const auto ops = OpEvents::Get().TakeOps(most);
  for (size_t i = 0; i < ops.size(); ++i) {
    scheduled_ns[i] = ops[i].scheduled_ns;
    start_ns[i] = ops[i].start_ns;
    end_ns[i] = ops[i].end_ns;
    step[i] = ops[i].step;
    node[i] = ops[i].node;
    thread[i] = ops[i].thread;
  }
  return ops.size();
}

int64_t workbench_take_steps(int64_t most, int64_t* start_ns, int64_t* end_ns, int64_t* step,
                             int32_t* executor, int64_t* tid, int32_t* root) {
  const auto runs = OpEvents::Get().TakeRuns(most);
  for (size_t i = 0; i < runs.size(); ++i) {
    start_ns[i] = runs[i].start_ns;
    end_ns[i] = runs[i].end_ns;
    step[i] = runs[i].step;
    executor[i] = runs[i].executor;
    tid[i] = runs[i].thread;
    root[i] = runs[i].root;
  }
  return runs.size();
}

char* workbench_traced_nodes() {
  std::ostringstream table;
  table << "id\tname\top\tdevice\n";
  size_t id = 0;
  for (const auto& node : OpEvents::Get().nodes()) {
    table << id++ << '\t' << node.name << '\t' << node.op << '\t' << node.device << '\n';
  }
  return Copied(table.str());
}

char* workbench_traced_threads() {
  std::ostringstream table;
  table << "thread\ttid\tname\n";
  size_t thread = 0;
  for (const auto& each : OpEvents::Get().threads()) {
    table << thread++ << '\t' << each.tid << '\t' << each.name << '\n';
  }
  return Copied(table.str());
}

}  // extern "C"
