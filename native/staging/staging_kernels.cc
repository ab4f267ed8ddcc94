#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "registration/guarded_kernel.h"
#include "staging/buffer_resource.h"
#include "staging/input/step_reads.h"
#include "staging/owner_kernel.h"
#include "staging/step/step_call.h"
#include "staging/step/step_end.h"
#include "tensorflow/core/framework/op_kernel.h"

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
using ResourcePtr = tensorflow::core::RefCountPtr<BufferResource>;

template <typename T>
absl::Status ReadScalar(OpKernelContext* context, int index, const char* name, T* value) {
  const Tensor& input = context->input(index);
  if (input.dims() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has shape ", input.shape().DebugString(), "; expected a scalar"));
  }
  *value = input.scalar<T>()();
  return absl::OkStatus();
}

template <typename T>
T Attribute(OpKernelConstruction* context, const char* name) {
  T value{};
  const absl::Status status = context->GetAttr(name, &value);
  if (!status.ok()) context->CtxFailure(status);
  return value;
}

class BufferPutOp : public AsyncOpKernel {
 public:
  explicit BufferPutOp(OpKernelConstruction* context)
      : AsyncOpKernel(context),
        address_(context),
        dtypes_(context),
        timeout_millis_(Attribute<int64_t>(context, "timeout_millis")),
        reserve_(Attribute<bool>(context, "reserve")) {}

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    Owner owner;
    OP_REQUIRES_OK_ASYNC(context, ReadOwner(context, &owner), done);
    ResourcePtr resource;
    OP_REQUIRES_OK_ASYNC(context, address_.Find(context, &resource), done);
    OP_REQUIRES_OK_ASYNC(context, resource->CheckDtypes(name(), dtypes_), done);
    TensorRecord record;
    record.reserve(context->num_inputs() - 1);
    for (int i = 1; i < context->num_inputs(); ++i) record.push_back(context->input(i));
    const auto call = StepCall::Begin(context, resource->buffer(), std::move(done));
    resource->buffer()->Put(call->ticket(), owner.token, owner.thread, std::move(record),
                            timeout_millis_, EndWithOutcome(call), reserve_);
  }

 private:
  const BufferAddress address_;
  const ItemDtypes dtypes_;
  const int64_t timeout_millis_;
  const bool reserve_;
};

class BufferFlushOp : public OwnerKernel {
 public:
  explicit BufferFlushOp(OpKernelConstruction* context)
      : OwnerKernel(context), timeout_millis_(Attribute<int64_t>(context, "timeout_millis")) {}

 private:
  void Call(TensorBuffer& buffer, const Owner& owner,
            const std::shared_ptr<StepCall>& call) const override {
    buffer.Flush(call->ticket(), owner.token, owner.thread, timeout_millis_, EndWithOutcome(call));
  }

  const int64_t timeout_millis_;
};

class BufferTakeOp : public AsyncOpKernel {
 public:
  explicit BufferTakeOp(OpKernelConstruction* context)
      : AsyncOpKernel(context),
        address_(context),
        dtypes_(context),
        start_timeout_millis_(Attribute<int64_t>(context, "start_timeout_millis")),
        ahead_(Attribute<bool>(context, "ahead")),
        returns_(Attribute<bool>(context, "returns")) {}

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    ResourcePtr resource;
    OP_REQUIRES_OK_ASYNC(context, address_.Find(context, &resource), done);
    OP_REQUIRES_OK_ASYNC(context, resource->CheckDtypes(name(), dtypes_), done);
    std::string source;
    OP_REQUIRES_ASYNC(
        context, !StepReads::Global().Take(context->step_id(), address_.name(), &source),
        ToStatus(PartsOfTwoItems(resource->buffer()->stage(), source)), done);
    if (returns_) {
      OP_REQUIRES_OK_ASYNC(
          context,
          AtStepEnd(context, [buffer = resource->buffer(),
                              step = context->step_id()] { buffer->EndStep(step); }),
          done);
    }
    const auto call = StepCall::Begin(context, resource->buffer(), std::move(done));
    resource->buffer()->Take(
        call->ticket(), context->step_id(), start_timeout_millis_,
        [call](const Outcome& outcome, TensorRecord record) {
          for (size_t i = 0; i < record.size(); ++i) {
            call->context()->set_output(static_cast<int>(i), std::move(record[i]));
          }
          call->End(ToStatus(outcome));
        },
        ahead_);
  }

 private:
  const BufferAddress address_;
  const ItemDtypes dtypes_;
  const int64_t start_timeout_millis_;
  const bool ahead_;
  const bool returns_;
};

class BufferResumeOp : public OpKernel {
 public:
  explicit BufferResumeOp(OpKernelConstruction* context) : OpKernel(context), address_(context) {}

  void Compute(OpKernelContext* context) override {
    Owner owner;
    OP_REQUIRES_OK(context, ReadOwner(context, &owner));
    ResourcePtr resource;
    OP_REQUIRES_OK(context, address_.Find(context, &resource));
    resource->buffer()->Resume(owner.token, owner.thread);
  }

 private:
  const BufferAddress address_;
};

class BufferRestOp : public AsyncOpKernel {
 public:
  explicit BufferRestOp(OpKernelConstruction* context)
      : AsyncOpKernel(context), address_(context) {}

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    Owner owner;
    int32_t reason = 0;
    OP_REQUIRES_OK_ASYNC(context, ReadOwner(context, &owner), done);
    tensorflow::tstring message;
    OP_REQUIRES_OK_ASYNC(context, ReadScalar(context, 1, "reason", &reason), done);
    OP_REQUIRES_OK_ASYNC(context, ReadScalar(context, 2, "message", &message), done);
    OP_REQUIRES_ASYNC(context, reason >= 0 && reason <= 4,
                      absl::InvalidArgumentError(
                          absl::StrCat("reason is ", reason, "; expected 0 to 4")),
                      done);
    ResourcePtr resource;
    OP_REQUIRES_OK_ASYNC(context, address_.Find(context, &resource), done);
    // It has nothing more to apply.
    resource->buffer()->EndRun(owner.token, owner.thread);
    const auto call = StepCall::Begin(context, resource->buffer(), std::move(done));
    resource->buffer()->Rest(call->ticket(), owner.token, static_cast<RestReason>(reason), message,
                             EndWithOutcome(call));
  }

 private:
  const BufferAddress address_;
};

class BufferCancelOp : public OpKernel {
 public:
  explicit BufferCancelOp(OpKernelConstruction* context) : OpKernel(context), address_(context) {}

  void Compute(OpKernelContext* context) override {
    Owner owner;
    int32_t code = 0;
    tensorflow::tstring message;
    OP_REQUIRES_OK(context, ReadOwner(context, &owner));
    OP_REQUIRES_OK(context, ReadScalar(context, 1, "code", &code));
    OP_REQUIRES_OK(context, ReadScalar(context, 2, "message", &message));
    OP_REQUIRES(context, code >= 0 && code <= 16,
                absl::InvalidArgumentError(
                    absl::StrCat("code is ", code, "; expected an error code from 0 to 16")));
    ResourcePtr resource;
    OP_REQUIRES_OK(context, address_.Find(context, &resource));
    resource->buffer()->Cancel(owner.token, code, message);
  }

 private:
  const BufferAddress address_;
};

class BufferCloseOp : public OpKernel {
 public:
  explicit BufferCloseOp(OpKernelConstruction* context) : OpKernel(context), address_(context) {}

  void Compute(OpKernelContext* context) override {
    Owner owner;
    OP_REQUIRES_OK(context, ReadOwner(context, &owner));
    ResourcePtr resource;
    OP_REQUIRES_OK(context, address_.Find(context, &resource));
    resource->buffer()->Close(owner.token);
  }

 private:
  const BufferAddress address_;
};

class BufferSizeOp : public OpKernel {
 public:
  explicit BufferSizeOp(OpKernelConstruction* context) : OpKernel(context), address_(context) {}

  void Compute(OpKernelContext* context) override {
    ResourcePtr resource;
    OP_REQUIRES_OK(context, address_.Find(context, &resource));
    Tensor* size = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({}), &size));
    size->scalar<int32_t>()() = static_cast<int32_t>(resource->buffer()->Size());
  }

 private:
  const BufferAddress address_;
};

class BufferDrainOp : public OpKernel {
 public:
  explicit BufferDrainOp(OpKernelConstruction* context) : OpKernel(context), address_(context) {}

  void Compute(OpKernelContext* context) override {
    bool enable = false;
    OP_REQUIRES_OK(context, ReadScalar(context, 0, "enable", &enable));
    ResourcePtr resource;
    OP_REQUIRES_OK(context, address_.Find(context, &resource));
    const std::vector<BufferEvent> rows = resource->buffer()->Drain(enable);
    Tensor* events = nullptr;
    const TensorShape shape({static_cast<int64_t>(rows.size()), BufferEvent::kColumns});
    OP_REQUIRES_OK(context, context->allocate_output(0, shape, &events));
    if (rows.empty()) return;
    const auto* first = reinterpret_cast<const int64_t*>(rows.data());
    std::copy_n(first, rows.size() * BufferEvent::kColumns, events->flat<int64_t>().data());
  }

 private:
  const BufferAddress address_;
};

REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferPut").Device(DEVICE_CPU), BufferPutOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferFlush").Device(DEVICE_CPU), BufferFlushOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferTake").Device(DEVICE_CPU), BufferTakeOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferResume").Device(DEVICE_CPU), BufferResumeOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferRest").Device(DEVICE_CPU), BufferRestOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferCancel").Device(DEVICE_CPU), BufferCancelOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferClose").Device(DEVICE_CPU), BufferCloseOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferSize").Device(DEVICE_CPU), BufferSizeOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferDrain").Device(DEVICE_CPU), BufferDrainOp);

// The same on a GPU, so that a whole buffer is on one device; only `record` is in its memory.
// Nothing is enqueued there and no stream waited for, as in TensorFlow's own Stage and Unstage:
// - A tensor copied from the host, or from the logical device of the stage's own stream, is complete
//   when put runs: such copies have streams of their own, and a Recv ends when its copy has ended.
//   So an item needs no event for take to wait for.
// - A tensor computed on the buffer's GPU may still be under way, even in take. But all steps share
//   the device's one compute stream, where the kernels that read the taken tensor come after it;
//   copies to the host and to other devices wait for that stream first.
// - A dropped record frees memory that kernels may still use. A kernel that gets it next comes
//   after them on that stream; a copy into it waits for that stream, or, with a timestamped
//   allocator, gets no such memory.
// Tensors are handed on, never copied. An output is in the memory that its list says because it was
// put in by that list (CheckDtypes); strings are on the host in either list.
REGISTER_GUARDED_KERNEL(
    Name("WorkbenchBufferPut").Device(DEVICE_GPU).HostMemory("owner").HostMemory("host_record"),
    BufferPutOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferFlush").Device(DEVICE_GPU).HostMemory("owner"),
                        BufferFlushOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferTake").Device(DEVICE_GPU).HostMemory("host_record"),
                        BufferTakeOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferResume").Device(DEVICE_GPU).HostMemory("owner"),
                        BufferResumeOp);
REGISTER_GUARDED_KERNEL(
    Name("WorkbenchBufferRest").Device(DEVICE_GPU).HostMemory("owner").HostMemory("reason")
        .HostMemory("message"),
    BufferRestOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferCancel")
                            .Device(DEVICE_GPU)
                            .HostMemory("owner")
                            .HostMemory("code")
                            .HostMemory("message"),
                        BufferCancelOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferClose").Device(DEVICE_GPU).HostMemory("owner"),
                        BufferCloseOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferSize").Device(DEVICE_GPU).HostMemory("size"),
                        BufferSizeOp);
REGISTER_GUARDED_KERNEL(
    Name("WorkbenchBufferDrain").Device(DEVICE_GPU).HostMemory("enable").HostMemory("events"),
    BufferDrainOp);

}  // namespace
}  // namespace workbench
