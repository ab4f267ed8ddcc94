#ifndef WORKBENCH_EXECUTOR_POLICIES_ORDERED_ORDERED_PLAN_H_
#define WORKBENCH_EXECUTOR_POLICIES_ORDERED_ORDERED_PLAN_H_

#include <cstdint>
#include <vector>

#include "executor/step/executor_state.h"
#include "tensorflow/core/common_runtime/graph_view.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/graph/graph.h"

namespace workbench {

// The order in which one thread runs a graph without control flow, fixed once: where each value
// goes, what is constant, and which kernels need more than a call.
struct OrderedPlan {
  // kAsync: it may end later, on another thread. kNothing: others may wait for it all the same.
  enum class Kind : uint8_t { kKernel, kAsync, kArgument, kReturn, kNothing };

  struct Call {
    const tensorflow::NodeItem* item;
    tensorflow::OpKernel* kernel;
    int32_t first_input;  // Of its values; num_inputs of them.
    int32_t target_begin;  // In target_begins; num_outputs + 1 from there.
    int32_t num_inputs;
    int32_t num_outputs;
    int32_t index;  // Of an argument or return value.
    Kind kind;
    // A value may be a variable, so the inputs are looked at when the kernel runs.
    bool reads_variables;
  };

  explicit OrderedPlan(const ExecutorShared& shared, const tensorflow::Graph& graph);

  // In the order in which they run.
  std::vector<Call> calls;
  // The inputs to which outputs go. Output `i` of a node goes to targets[begin[i]:begin[i+1]] with
  // begin = target_begins + node.target_begin.
  std::vector<int32_t> targets;
  std::vector<int32_t> target_begins;

  int32_t num_values = 0;
  std::vector<tensorflow::AllocatorAttributes> value_attributes;
  struct Constant {
    int32_t value;
    const tensorflow::Tensor* tensor;
  };
  std::vector<Constant> constants;
  // Nodes of which nothing is left to run; a trace names them.
  std::vector<int32_t> settled;

  // Where a kernel is asynchronous the order is a wish: what it waits for runs later.
  bool has_async = false;
  std::vector<int32_t> waiting;  // By position, how many must have ended before.
  Flow behind;                   // Positions.
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_POLICIES_ORDERED_ORDERED_PLAN_H_
