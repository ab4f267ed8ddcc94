#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "registration/guarded_kernel.h"
#include "staging/buffer_resource.h"
#include "staging/input/held_items.h"
#include "staging/input/input_watches.h"
#include "staging/input/step_reads.h"
#include "staging/step/step_call.h"
#include "staging/step/step_end.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/variant.h"

namespace workbench {
namespace {

using tensorflow::AsyncOpKernel;
using tensorflow::DEVICE_CPU;
using tensorflow::DEVICE_GPU;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::Variant;
using ResourcePtr = tensorflow::core::RefCountPtr<BufferResource>;
using NameList = std::vector<std::string>;

bool Has(const NameList& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class InputSaveOp : public OpKernel {
 public:
  explicit InputSaveOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("stages", &stages_));
    OP_REQUIRES_OK(context, context->GetAttr("saves", &saves_));
  }

  void Compute(OpKernelContext* context) override {
    std::string input;
    OP_REQUIRES_OK(context, NameOfInput(context, &input));
    for (const InputWatch& watch : InputWatches::Global().Of(input)) {
      const std::string& stage = watch.buffer->stage();
      OP_REQUIRES(
          context, Has(stages_, stage) || !watch.buffer->IsInUse(),
          absl::FailedPreconditionError(absl::StrCat(
              "the state of the input of stage '", stage, "' was not saved: the stage has read "
              "ahead, and '", saves_, "' cannot save its batches too. Save an iterator, no reader, "
              "by its own handle, outside of functions, in the graph that has the stage")));
    }
  }

 private:
  NameList stages_;
  std::string saves_;
};

class BufferHoldOp : public AsyncOpKernel {
 public:
  explicit BufferHoldOp(OpKernelConstruction* context) : AsyncOpKernel(context), address_(context) {
    OP_REQUIRES_OK(context, context->GetAttr("timeout_millis", &timeout_millis_));
  }

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    ResourcePtr resource;
    OP_REQUIRES_OK_ASYNC(context, address_.Find(context, &resource), done);
    const int64_t step = context->step_id();
    OP_REQUIRES_OK_ASYNC(
        context,
        AtStepEnd(context, [buffer = resource->buffer(), step] { buffer->Release(step); }), done);
    const auto call = StepCall::Begin(context, resource->buffer(), std::move(done));
    resource->buffer()->Hold(call->ticket(), step, timeout_millis_, EndWithOutcome(call));
  }

 private:
  const BufferAddress address_;
  int64_t timeout_millis_ = 0;
};

// Copies between the host and the device of a kernel, where that has a memory of its own.
class DeviceCopies {
 public:
  explicit DeviceCopies(OpKernelContext* context)
      : context_(context->op_device_context()),
        device_(static_cast<tensorflow::Device*>(context->device())),
        copies_(context->device()->tensorflow_accelerator_device_info() != nullptr) {}

  absl::Status ToHost(Tensor* tensor) const {
    if (!copies_ || tensor->dtype() == tensorflow::DT_STRING) return absl::OkStatus();
    Tensor host(tensor->dtype(), tensor->shape());
    if (tensor->NumElements() > 0) {
      TF_RETURN_IF_ERROR(context_->CopyDeviceTensorToCPUSync(tensor, "held", device_, &host));
    }
    *tensor = std::move(host);
    return absl::OkStatus();
  }

  absl::Status ToDevice(Tensor* tensor) const {
    if (!copies_ || tensor->dtype() == tensorflow::DT_STRING) return absl::OkStatus();
    Tensor own(device_->GetAllocator(tensorflow::AllocatorAttributes()), tensor->dtype(),
               tensor->shape());
    if (tensor->NumElements() > 0) {
      TF_RETURN_IF_ERROR(context_->CopyCPUTensorToDeviceSync(tensor, device_, &own));
    }
    *tensor = std::move(own);
    return absl::OkStatus();
  }

 private:
  tensorflow::DeviceContext* const context_;
  tensorflow::Device* const device_;
  const bool copies_;
};

class BufferHeldOp : public OpKernel {
 public:
  explicit BufferHeldOp(OpKernelConstruction* context)
      : OpKernel(context), address_(context), dtypes_(context) {}

  void Compute(OpKernelContext* context) override {
    ResourcePtr resource;
    OP_REQUIRES_OK(context, address_.Find(context, &resource));
    HeldItems held;
    held.stage = resource->buffer()->stage();
    resource->buffer()->VisitHeld(
        [&held](const TensorRecord& record) { held.items.push_back(record); });
    resource->buffer()->EndHold(context->step_id());
    const DeviceCopies copies(context);
    for (TensorRecord& item : held.items) {
      for (size_t i = 0; i < std::min(item.size(), dtypes_.record.size()); ++i) {
        OP_REQUIRES_OK(context, copies.ToHost(&item[i]));
      }
    }
    Tensor output(tensorflow::DT_VARIANT, TensorShape({}));
    output.scalar<Variant>()() = std::move(held);
    context->set_output(0, std::move(output));
  }

 private:
  const BufferAddress address_;
  const ItemDtypes dtypes_;
};

// The items of stages in a state.
absl::Status ItemsIn(const Tensor& state, std::vector<const HeldItems*>* found) {
  if (state.dims() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("state has shape ", state.shape().DebugString(),
                                                   "; expected a vector"));
  }
  for (int64_t i = 0; i < state.NumElements(); ++i) {
    const auto* items = state.vec<Variant>()(i).get<HeldItems>();
    if (items != nullptr) found->push_back(items);
  }
  return absl::OkStatus();
}

class BufferPreloadOp : public OpKernel {
 public:
  explicit BufferPreloadOp(OpKernelConstruction* context)
      : OpKernel(context), address_(context), dtypes_(context) {}

  void Compute(OpKernelContext* context) override {
    ResourcePtr resource;
    OP_REQUIRES_OK(context, address_.Find(context, &resource));
    OP_REQUIRES_OK(context, resource->CheckDtypes(name(), dtypes_));
    std::vector<const HeldItems*> found;
    OP_REQUIRES_OK(context, ItemsIn(context->input(0), &found));
    std::vector<TensorRecord> records;
    for (const HeldItems* items : found) {
      if (items->stage != resource->buffer()->stage()) continue;
      records.insert(records.end(), items->items.begin(), items->items.end());
    }
    const DeviceCopies copies(context);
    for (TensorRecord& record : records) {
      OP_REQUIRES_OK(context, CheckFits(resource->buffer()->stage(), record));
      for (size_t i = 0; i < dtypes_.record.size(); ++i) {
        OP_REQUIRES_OK(context, copies.ToDevice(&record[i]));
      }
    }
    resource->buffer()->Preload(std::move(records));
  }

 private:
  absl::Status CheckFits(const std::string& stage, const TensorRecord& record) const {
    tensorflow::DataTypeVector wanted = dtypes_.record;
    wanted.insert(wanted.end(), dtypes_.host_record.begin(), dtypes_.host_record.end());
    tensorflow::DataTypeVector found;
    for (const Tensor& tensor : record) found.push_back(tensor.dtype());
    if (found == wanted) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "the saved state of the input has batches of stage '", stage, "' with the dtypes [",
        tensorflow::DataTypeVectorString(found), "], but the stage has [",
        tensorflow::DataTypeVectorString(wanted),
        "] now; restore it in a graph whose stage delivers what it did when it was saved"));
  }

  const BufferAddress address_;
  const ItemDtypes dtypes_;
};

class InputStateOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    std::vector<Variant> elements;
    const Tensor& serialized = context->input(0);
    for (int64_t i = 0; i < serialized.NumElements(); ++i) {
      elements.push_back(serialized.flat<Variant>()(i));
    }
    for (int i = 1; i < context->num_inputs(); ++i) {
      const Tensor& input = context->input(i);
      OP_REQUIRES(context, input.dims() == 0,
                  absl::InvalidArgumentError(absl::StrCat("input ", i, " has shape ",
                                                          input.shape().DebugString(),
                                                          "; expected a scalar")));
      const Variant& held = input.scalar<Variant>()();
      const auto* items = held.get<HeldItems>();
      OP_REQUIRES(context, items != nullptr,
                  absl::InvalidArgumentError(absl::StrCat("input ", i, " holds a ", held.TypeName(),
                                                          "; expected ", HeldItems::kTypeName)));
      if (!items->items.empty()) elements.push_back(held);
    }
    Tensor state(tensorflow::DT_VARIANT, TensorShape({static_cast<int64_t>(elements.size())}));
    std::move(elements.begin(), elements.end(), state.vec<Variant>().data());
    context->set_output(0, std::move(state));
  }
};

class InputStateOnlyOp : public OpKernel {
 public:
  explicit InputStateOnlyOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("stages", &stages_));
  }

  void Compute(OpKernelContext* context) override {
    const Tensor& state = context->input(0);
    std::vector<const HeldItems*> found;
    OP_REQUIRES_OK(context, ItemsIn(state, &found));
    for (const HeldItems* items : found) {
      OP_REQUIRES(context, Has(stages_, items->stage),
                  absl::FailedPreconditionError(absl::StrCat(
                      "the saved state of the input has ", items->items.size(),
                      " batches that stage '", items->stage, "' had read ahead; of that name there "
                      "is no stage here that reads this input, but ",
                      stages_.empty() ? "none at all" : absl::StrJoin(stages_, ", "),
                      ". Restore it in a graph with that stage; these batches would be lost")));
    }
    Tensor serialized(tensorflow::DT_VARIANT,
                      TensorShape({state.NumElements() - static_cast<int64_t>(found.size())}));
    int64_t next = 0;
    for (int64_t i = 0; i < state.NumElements(); ++i) {
      const Variant& element = state.vec<Variant>()(i);
      if (element.get<HeldItems>() == nullptr) serialized.vec<Variant>()(next++) = element;
    }
    context->set_output(0, std::move(serialized));
  }

 private:
  NameList stages_;
};

class SourceReadOp : public OpKernel {
 public:
  explicit SourceReadOp(OpKernelConstruction* context) : OpKernel(context) {
    std::string container;
    OP_REQUIRES_OK(context, context->GetAttr("stage", &stage_));
    OP_REQUIRES_OK(context, context->GetAttr("container", &container));
    OP_REQUIRES_OK(context, context->GetAttr("shared_name", &buffer_));
    OP_REQUIRES_OK(context, context->GetAttr("source", &source_));
    buffer_ = absl::StrCat(container, "/", buffer_);
  }

  void Compute(OpKernelContext* context) override {
    OP_REQUIRES(context, !StepReads::Global().Read(context->step_id(), buffer_, source_),
                ToStatus(PartsOfTwoItems(stage_, source_)));
  }

 private:
  std::string stage_;
  std::string buffer_;
  std::string source_;
};

REGISTER_GUARDED_KERNEL(Name("WorkbenchInputSave").Device(DEVICE_CPU).Priority(2), InputSaveOp);
REGISTER_GUARDED_KERNEL(
    Name("WorkbenchInputSave").Device(DEVICE_GPU).HostMemory("handle").Priority(1), InputSaveOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferHold").Device(DEVICE_CPU), BufferHoldOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferHold").Device(DEVICE_GPU), BufferHoldOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferHeld").Device(DEVICE_CPU), BufferHeldOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferHeld").Device(DEVICE_GPU).HostMemory("held"),
                        BufferHeldOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferPreload").Device(DEVICE_CPU), BufferPreloadOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferPreload").Device(DEVICE_GPU).HostMemory("state"),
                        BufferPreloadOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchInputState").Device(DEVICE_CPU), InputStateOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchInputStateOnly").Device(DEVICE_CPU), InputStateOnlyOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchSourceRead").Device(DEVICE_CPU), SourceReadOp);

}  // namespace
}  // namespace workbench
