#ifndef WORKBENCH_EXECUTOR_POLICIES_ORDERED_ORDERED_PLAN_H_
#define WORKBENCH_EXECUTOR_POLICIES_ORDERED_ORDERED_PLAN_H_

#include <cstdint>
#include <vector>

#include "executor/step/executor_state.h"
#include "tensorflow/core/common_runtime/graph_view.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/graph/graph.h"

namespace workbench {

// The order in which one thread runs a graph without control flow, computed once: where each value
// goes, which values are constant, and which kernels need more than a call.
struct OrderedPlan {
  // kAsync: the kernel may end later, on another thread. kNothing: there is no kernel to run, but
  // other nodes may have to wait for this one.
  enum class Kind : uint8_t { kKernel, kAsync, kArgument, kReturn, kNothing };

  struct Call {
    const tensorflow::NodeItem* item;
    tensorflow::OpKernel* kernel;
    int32_t first_input;   // Its inputs are the values [first_input, first_input + num_inputs).
    int32_t target_begin;  // Its num_outputs + 1 entries of target_begins begin here.
    int32_t num_inputs;
    int32_t num_outputs;
    int32_t index;  // Of an argument or return value.
    Kind kind;
    // An input may be a reference to a variable, which has to be read when the kernel runs.
    bool reads_variables;
  };

  explicit OrderedPlan(const ExecutorState& executor, const tensorflow::Graph& graph);

  // In the order in which they run.
  std::vector<Call> calls;
  // The values to which outputs go. Output `i` of a node goes to targets[begin[i]:begin[i+1]] with
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
  // Nodes that are not among the calls because they have nothing to run; a trace shows them.
  std::vector<int32_t> settled;

  // With asynchronous kernels the order is preferred, not fixed: the calls behind such a kernel run
  // when it has ended.
  bool has_async = false;
  // By position in calls; empty without asynchronous kernels.
  std::vector<int32_t> in_degrees;
  Dag successors;
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_POLICIES_ORDERED_ORDERED_PLAN_H_
