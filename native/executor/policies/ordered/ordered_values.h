#ifndef WORKBENCH_EXECUTOR_POLICIES_ORDERED_ORDERED_VALUES_H_
#define WORKBENCH_EXECUTOR_POLICIES_ORDERED_ORDERED_VALUES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "executor/policies/ordered/ordered_plan.h"
#include "tensorflow/core/common_runtime/entry.h"
#include "tensorflow/core/common_runtime/step_stats_collector.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace workbench {

// The inputs of all calls of a plan while a step runs. Their places are fixed by the plan and used
// again by later steps: constants stay, other values live from their producer to their consumer.
class OrderedValues {
 public:
  using Call = OrderedPlan::Call;

  // The plan must outlive it.
  explicit OrderedValues(const OrderedPlan& plan);

  absl::Span<const tensorflow::TensorValue> InputsOf(const Call& call) const {
    return absl::MakeConstSpan(values_.data() + call.first_input, call.num_inputs);
  }
  // Reads variables among the inputs of a call, before its kernel runs.
  absl::Status Prepare(const Call& call);

  // Moves the kernel's outputs to the calls that read them. `stats` may be null.
  absl::Status Pass(const Call& call, tensorflow::OpKernelContext* context,
                    tensorflow::NodeExecStatsInterface* stats);

  // Passes an argument or a return value without its kernel. False: nothing was done, the kernel
  // has to run.
  bool PassArgument(const Call& call, tensorflow::CallFrameInterface* frame, absl::Status* status);
  bool PassReturn(const Call& call, tensorflow::CallFrameInterface* frame, absl::Status* status);

  void ClearInputs(const Call& call) {
    Clear(entries_.data() + call.first_input, call.num_inputs);
  }
  void ClearAll() { Clear(entries_.data(), plan_.num_values); }

 private:
  using Entry = tensorflow::Entry;

  struct Targets {
    const int32_t* begin;
    const int32_t* end;
  };
  Targets TargetsOf(const Call& call, int32_t output) const {
    const int32_t* begins = plan_.target_begins.data() + call.target_begin + output;
    return {plan_.targets.data() + begins[0], plan_.targets.data() + begins[1]};
  }
  static void Clear(Entry* entry, int32_t count) {
    for (const Entry* end = entry + count; entry != end; ++entry) {
      if (entry->state != Entry::State::HAS_CONST_TENSOR) entry->ClearVal();
    }
  }
  // At least one target. The last one gets the value moved: a kernel may write to a value that has
  // no other reader.
  void Deliver(Targets to, tensorflow::Tensor&& value) {
    const int32_t* target = to.begin;
    for (; target != to.end - 1; ++target) {
      entries_[*target].val.Init(value);
      entries_[*target].state = Entry::State::HAS_VALUE;
    }
    entries_[*target].val.Init(std::move(value));
    entries_[*target].state = Entry::State::HAS_VALUE;
  }
  absl::Status PassUnusual(const Call& call, int32_t output, const tensorflow::TensorValue& made,
                           tensorflow::NodeExecStatsInterface* stats);

  const OrderedPlan& plan_;
  std::vector<Entry> entries_;
  std::vector<tensorflow::TensorValue> values_;
};

// In the header, so that the compiler inlines it into the loop over all calls.
inline absl::Status OrderedValues::Pass(const Call& call, tensorflow::OpKernelContext* context,
                                        tensorflow::NodeExecStatsInterface* stats) {
  absl::Status status;
  for (int32_t output = 0; output < call.num_outputs; ++output) {
    const tensorflow::TensorValue made = context->release_output(output);
    if (TF_PREDICT_FALSE(made.tensor == nullptr || made.is_ref() ||
                         made.tensor->dtype() != call.item->output_type(output))) {
      status.Update(PassUnusual(call, output, made, stats));
      continue;
    }
    if (TF_PREDICT_FALSE(stats != nullptr) && made.tensor->IsInitialized()) {
      stats->SetOutput(output, made.tensor);
    }
    const Targets to = TargetsOf(call, output);
    if (to.begin != to.end) Deliver(to, std::move(*made.tensor));
    delete made.tensor;
  }
  return status;
}

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_POLICIES_ORDERED_ORDERED_VALUES_H_
