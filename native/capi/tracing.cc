// The tracer of ops and steps.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sstream>

#include "capi/export.h"
#include "tracing/op_events.h"

using workbench::OpEvents;

WORKBENCH_EXPORT void workbench_trace_ops(int on) { OpEvents::Get().Record(on != 0); }
WORKBENCH_EXPORT int64_t workbench_traced_ops() { return OpEvents::Get().ready(); }
WORKBENCH_EXPORT int64_t workbench_traced_steps() { return OpEvents::Get().ended_runs(); }
WORKBENCH_EXPORT int64_t workbench_lost_ops() { return OpEvents::Get().lost(); }

// Fills the columns with up to `most` ops, and returns how many.
WORKBENCH_EXPORT int64_t workbench_take_ops(int64_t most, int64_t* scheduled_ns,
                                            int64_t* start_ns, int64_t* end_ns, int64_t* step,
                                            int64_t* made_bytes, int64_t* passed_bytes,
                                            int32_t* node, int32_t* thread) {
  const auto ops = OpEvents::Get().TakeOps(most);
  for (size_t i = 0; i < ops.size(); ++i) {
    scheduled_ns[i] = ops[i].scheduled_ns;
    start_ns[i] = ops[i].start_ns;
    end_ns[i] = ops[i].end_ns;
    step[i] = ops[i].step;
    made_bytes[i] = ops[i].made_bytes;
    passed_bytes[i] = ops[i].passed_bytes;
    node[i] = ops[i].node;
    thread[i] = ops[i].thread;
  }
  return ops.size();
}

// The same with steps.
WORKBENCH_EXPORT int64_t workbench_take_steps(int64_t most, int64_t* start_ns, int64_t* end_ns,
                                              int64_t* step, int32_t* executor, int64_t* tid,
                                              int32_t* root) {
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

WORKBENCH_EXPORT char* workbench_traced_nodes() {
  std::ostringstream table;
  table << "id\tname\top\tdevice\n";
  size_t id = 0;
  for (const auto& node : OpEvents::Get().nodes()) {
    table << id++ << '\t' << node.name << '\t' << node.op << '\t' << node.device << '\n';
  }
  return strdup(table.str().c_str());
}

// The edges between those nodes, a line each: numbers of source and target, 1 for a control edge.
WORKBENCH_EXPORT char* workbench_traced_edges() {
  std::ostringstream table;
  for (const auto& edge : OpEvents::Get().edges()) {
    table << edge.source << '\t' << edge.target << '\t' << edge.control << '\n';
  }
  return strdup(table.str().c_str());
}

WORKBENCH_EXPORT char* workbench_traced_threads() {
  std::ostringstream table;
  table << "thread\ttid\tname\n";
  size_t number = 0;
  for (const auto& thread : OpEvents::Get().threads()) {
    table << number++ << '\t' << thread.tid << '\t' << thread.name << '\n';
  }
  return strdup(table.str().c_str());
}
