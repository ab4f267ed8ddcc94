#include "executor/step/node_io.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/log_memory.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/platform/errors.h"

namespace workbench {
namespace {

using tensorflow::AttachDef;
using tensorflow::DataTypeString;
using tensorflow::Entry;
using tensorflow::NodeItem;
using tensorflow::Tensor;
using tensorflow::TensorValue;

const Tensor* EmptyTensor() {
  static const Tensor* empty = new Tensor();
  return empty;
}

absl::Status NotARef(const NodeItem& item, int input) {
  return AttachDef(absl::InvalidArgumentError(absl::StrCat(input, "-th input expects a ref type")), item.kernel->def());
}

absl::Status ReadVariable(const NodeItem& item, int input, Entry* entry, bool as_ref,
                          TensorValue* value) {
  Tensor* variable = entry->ref_tensor.tensor;
  auto* mu = entry->ref_tensor.mu;
  {
    tensorflow::tf_shared_lock lock(*mu);
    if (!variable->IsInitialized() && !item.is_initialization_op) {
      return AttachDef(
          absl::FailedPreconditionError(absl::StrCat("Attempting to use uninitialized value ",
                                                     item.kernel->requested_input(input))),
          item.kernel->def());
    }
    if (as_ref) {
      value->mutex_if_ref = mu;
      value->tensor = variable;
      return absl::OkStatus();
    }
    entry->val.Init(*variable);
  }
  entry->state = Entry::State::HAS_VALUE;
  value->mutex_if_ref = nullptr;
  value->tensor = entry->val.get();
  // Another op may have given the variable another type since.
  if (item.input_type(input) != value->tensor->dtype()) {
    return AttachDef(absl::InvalidArgumentError(absl::StrCat(
                         input, "-th input expects type ", DataTypeString(item.input_type(input)),
                         " but automatically dereferenced input tensor has type ",
                         DataTypeString(value->tensor->dtype()))),
                     item.kernel->def());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PrepareInputs(const NodeItem& item, Entry* first, TensorValue* inputs,
                           tensorflow::AllocatorAttributes* attributes, bool* dead) {
  *dead = false;
  for (int i = 0; i < item.num_inputs; ++i) {
    const bool wants_ref = TF_PREDICT_FALSE(item.is_any_input_ref_typed) &&
                           tensorflow::IsRefType(item.input_type(i));
    Entry* entry = first + i;
    attributes[i] = entry->alloc_attr;
    TensorValue* value = inputs + i;
    value->mutex_if_ref = nullptr;
    switch (entry->state) {
      case Entry::State::NO_VALUE:
        if (item.is_merge) {
          value->tensor = nullptr;
        } else {
          // A kernel may ask for it, so there must be something.
          value->tensor = const_cast<Tensor*>(EmptyTensor());
          *dead = true;
        }
        break;
      case Entry::State::HAS_VALUE:
        if (TF_PREDICT_FALSE(wants_ref)) return NotARef(item, i);
        value->tensor = entry->val.get();
        break;
      case Entry::State::HAS_CONST_TENSOR:
        if (TF_PREDICT_FALSE(wants_ref)) return NotARef(item, i);
        // Kernels that write to an input ask whether they may.
        value->tensor = const_cast<Tensor*>(entry->const_tensor);
        break;
      case Entry::State::HAS_REF_TENSOR: {
        absl::Status read = ReadVariable(item, i, entry, wants_ref, value);
        if (!read.ok()) return read;
        break;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status KernelError(const NodeItem& item, tensorflow::OpKernelContext* context) {
  absl::Status status = AttachDef(context->status(), item.kernel->def());
  if (absl::IsResourceExhausted(status)) {
    std::string hint;
    if (context->stats_collector() != nullptr) {
      hint = context->stats_collector()->ReportAllocsOnResourceExhausted(status.message());
    } else {
      hint =
          "\nHint: If you want to see a list of allocated tensors when OOM happens, add "
          "report_tensor_allocations_upon_oom to RunOptions for current allocation info. This "
          "isn't available when running in Eager mode.\n";
    }
    return tensorflow::errors::CreateWithUpdatedMessage(status,
                                                        absl::StrCat(status.message(), hint));
  }
  if (absl::IsUnavailable(status) && !item.is_distributed_communication) {
    return tensorflow::errors::ReplaceErrorFromNonCommunicationOps(status, item.kernel->name());
  }
  return status;
}

absl::Status ProcessOutputs(const NodeItem& item, tensorflow::OpKernelContext* context,
                            Entry* outputs, tensorflow::NodeExecStatsInterface* stats) {
  if (TF_PREDICT_FALSE(!context->status().ok())) return KernelError(item, context);
  absl::Status status;
  for (int i = 0; i < item.num_outputs; ++i) {
    const TensorValue value = context->release_output(i);
    Entry* out = outputs + i;
    if (value.tensor == nullptr) {
      // Only these may leave an output out.
      if (!item.is_recv_or_switch && !(item.outputs_required && !item.outputs_required[i])) {
        status.Update(absl::InternalError(
            absl::StrCat("Missing ", i, "-th output from ",
                         tensorflow::FormatNodeDefForError(item.kernel->def()))));
      }
      continue;
    }
    out->alloc_attr = context->output_alloc_attr(i);
    const tensorflow::DataType type = value.dtype_safe();
    if (TF_PREDICT_TRUE(type == item.output_type(i))) {
      if (stats != nullptr && value.tensor->IsInitialized()) stats->SetOutput(i, value.tensor);
      if (value.is_ref()) {
        out->state = Entry::State::HAS_REF_TENSOR;
        out->ref_tensor.tensor = value.tensor;
        out->ref_tensor.mu = value.mutex_if_ref;
      } else {
        out->state = Entry::State::HAS_VALUE;
        out->val.Init(std::move(*value.tensor));
        if (TF_PREDICT_FALSE(tensorflow::LogMemory::IsEnabled())) {
          tensorflow::LogMemory::RecordTensorOutput(item.kernel->name(), context->step_id(), i,
                                                    *out->val);
        }
      }
    } else {
      status.Update(absl::InternalError(
          absl::StrCat("Output ", i, " of type ", DataTypeString(type),
                       " does not match declared output type ",
                       DataTypeString(item.output_type(i)), " for node ",
                       tensorflow::FormatNodeDefForError(item.kernel->def()))));
    }
    if (!value.is_ref()) delete value.tensor;
  }
  return status;
}

}  // namespace workbench
