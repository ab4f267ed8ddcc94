#include "executor/policies/ordered/ordered_values.h"

#include "absl/strings/str_cat.h"
#include "executor/step/node_io.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace workbench {

using tensorflow::Tensor;
using tensorflow::TensorValue;

OrderedValues::OrderedValues(const OrderedPlan& plan)
    : plan_(plan), entries_(plan.num_values), values_(plan.num_values) {
  for (int32_t i = 0; i < plan.num_values; ++i) {
    entries_[i].alloc_attr = plan.value_attributes[i];
    values_[i].tensor = entries_[i].val.get();
  }
  for (const OrderedPlan::Constant& constant : plan.constants) {
    entries_[constant.value].state = Entry::State::HAS_CONST_TENSOR;
    entries_[constant.value].const_tensor = constant.tensor;
    values_[constant.value].tensor = const_cast<Tensor*>(constant.tensor);
  }
}

absl::Status OrderedValues::Prepare(const Call& call) {
  absl::InlinedVector<tensorflow::AllocatorAttributes, 8> attributes(call.num_inputs);
  bool dead;
  return PrepareInputs(*call.item, entries_.data() + call.first_input,
                       values_.data() + call.first_input, attributes.data(), &dead);
}

absl::Status OrderedValues::PassUnusual(const Call& call, int32_t output, const TensorValue& made,
                                        tensorflow::NodeExecStatsInterface* stats) {
  const tensorflow::NodeItem& item = *call.item;
  const Targets to = TargetsOf(call, output);
  if (made.tensor == nullptr) {
    if (item.is_recv_or_switch || (item.outputs_required && !item.outputs_required[output])) {
      for (const int32_t* target = to.begin; target != to.end; ++target) {
        entries_[*target].val.Init();
        entries_[*target].state = Entry::State::HAS_VALUE;
      }
      return absl::OkStatus();
    }
    return absl::InternalError(
        absl::StrCat("Missing ", output, "-th output from ",
                     tensorflow::FormatNodeDefForError(call.kernel->def())));
  }
  const tensorflow::DataType type = made.dtype_safe();
  if (type != item.output_type(output)) {
    if (!made.is_ref()) delete made.tensor;
    return absl::InternalError(
        absl::StrCat("Output ", output, " of type ", tensorflow::DataTypeString(type),
                     " does not match declared output type ",
                     tensorflow::DataTypeString(item.output_type(output)), " for node ",
                     tensorflow::FormatNodeDefForError(call.kernel->def())));
  }
  if (stats != nullptr && made.tensor->IsInitialized()) stats->SetOutput(output, made.tensor);
  for (const int32_t* target = to.begin; target != to.end; ++target) {
    entries_[*target].ref_tensor.tensor = made.tensor;
    entries_[*target].ref_tensor.mu = made.mutex_if_ref;
    entries_[*target].state = Entry::State::HAS_REF_TENSOR;
  }
  return absl::OkStatus();
}

bool OrderedValues::PassArgument(const Call& call, tensorflow::CallFrameInterface* frame,
                                 absl::Status* status) {
  if (TF_PREDICT_FALSE(frame == nullptr || size_t(call.index) >= frame->num_args())) return false;
  const Targets to = TargetsOf(call, 0);
  if (to.begin == to.end) return true;
  const tensorflow::DataType type = call.item->output_type(0);
  if (!frame->CanConsumeArg(call.index)) {
    const Tensor* value;
    if (!frame->GetArg(call.index, &value).ok() || value->dtype() != type) return false;
    Deliver(to, Tensor(*value));
    return true;
  }
  Tensor value;
  frame->ConsumeArg(call.index, &value);
  if (TF_PREDICT_FALSE(value.dtype() != type)) {
    // Nothing is left that the kernel could complain of.
    *status = tensorflow::AttachDef(
        absl::InvalidArgumentError(absl::StrCat("Type mismatch: actual ",
                                                tensorflow::DataTypeString(value.dtype()),
                                                " vs. expect ", tensorflow::DataTypeString(type))),
        call.kernel->def());
    return true;
  }
  Deliver(to, std::move(value));
  return true;
}

bool OrderedValues::PassReturn(const Call& call, tensorflow::CallFrameInterface* frame,
                               absl::Status* status) {
  if (TF_PREDICT_FALSE(call.reads_variables || frame == nullptr)) return false;
  const Tensor& value = *values_[call.first_input].tensor;
  if (TF_PREDICT_FALSE(value.dtype() != call.item->input_type(0))) return false;
  *status = frame->SetRetval(call.index, value);
  if (TF_PREDICT_FALSE(!status->ok())) {
    *status = tensorflow::AttachDef(*status, call.kernel->def());
  } else {
    ClearInputs(call);
  }
  return true;
}

}  // namespace workbench
