#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "registration/guarded_kernel.h"
#include "staging/buffer_resource.h"
#include "staging/owner_kernel.h"
#include "staging/step/step_call.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace workbench {
namespace {

using tensorflow::AsyncOpKernel;
using tensorflow::DEVICE_CPU;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using ResourcePtr = tensorflow::core::RefCountPtr<BufferResource>;

class BufferBeginOp : public OwnerKernel {
 public:
  using OwnerKernel::OwnerKernel;

 private:
  void Call(TensorBuffer& buffer, const Owner& owner,
            const std::shared_ptr<StepCall>& call) const override {
    buffer.Begin(call->ticket(), owner.token, owner.thread, EndWithOutcome(call));
  }
};

absl::Status Deliver(const tensorflow::DataTypeVector& types, TensorRecord record,
                     OpKernelContext* context) {
  tensorflow::DataTypeVector found;
  for (const tensorflow::Tensor& each : record) found.push_back(each.dtype());
  if (found != types) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a step returned [", tensorflow::DataTypeVectorString(found), "]; '",
        context->op_kernel().name(), "' awaits [", tensorflow::DataTypeVectorString(types), "]"));
  }
  for (size_t i = 0; i < record.size(); ++i) {
    context->set_output(static_cast<int>(i), std::move(record[i]));
  }
  return absl::OkStatus();
}

class BufferAwaitOp : public OwnerKernel {
 public:
  using OwnerKernel::OwnerKernel;

 private:
  void Call(TensorBuffer& buffer, const Owner& owner,
            const std::shared_ptr<StepCall>& call) const override {
    buffer.Await(call->ticket(), owner.token, owner.thread,
                 [call, types = output_types()](const Outcome& outcome, TensorRecord record) {
                   call->End(outcome.ok() ? Deliver(types, std::move(record), call->context())
                                          : ToStatus(outcome));
                 });
  }
};

class BufferReturnOp : public OpKernel {
 public:
  explicit BufferReturnOp(OpKernelConstruction* context) : OpKernel(context), address_(context) {}

  void Compute(OpKernelContext* context) override {
    ResourcePtr resource;
    OP_REQUIRES_OK(context, address_.Find(context, &resource));
    TensorRecord record;
    record.reserve(context->num_inputs());
    for (int i = 0; i < context->num_inputs(); ++i) record.push_back(context->input(i));
    OP_REQUIRES_OK(
        context, ToStatus(resource->buffer()->Return(context->step_id(), std::move(record))));
  }

 private:
  const BufferAddress address_;
};

class BufferSettleOp : public AsyncOpKernel {
 public:
  explicit BufferSettleOp(OpKernelConstruction* context)
      : AsyncOpKernel(context), address_(context) {}

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    ResourcePtr resource;
    OP_REQUIRES_OK_ASYNC(context, address_.Find(context, &resource), done);
    const auto call = StepCall::Begin(context, resource->buffer(), std::move(done));
    resource->buffer()->Settle(call->ticket(), EndWithOutcome(call));
  }

 private:
  const BufferAddress address_;
};

// Distant variables are read by way of the host; the buffer of their rows is there.
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferBegin").Device(DEVICE_CPU), BufferBeginOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferAwait").Device(DEVICE_CPU), BufferAwaitOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferReturn").Device(DEVICE_CPU), BufferReturnOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferSettle").Device(DEVICE_CPU), BufferSettleOp);

}  // namespace
}  // namespace workbench
