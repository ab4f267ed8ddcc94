#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "registration/guarded_kernel.h"
#include "staging/buffer_resource.h"
#include "staging/input/input_watches.h"
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
using tensorflow::tstring;

class InputNameOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    std::string name;
    OP_REQUIRES_OK(context, NameOfInput(context, &name));
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({}), &output));
    output->scalar<tstring>()() = name;
  }
};

class BufferWatchOp : public OpKernel {
 public:
  explicit BufferWatchOp(OpKernelConstruction* context) : OpKernel(context), address_(context) {
    OP_REQUIRES_OK(context, context->GetAttr("timeout_millis", &timeout_millis_));
  }

  void Compute(OpKernelContext* context) override {
    tensorflow::core::RefCountPtr<BufferResource> resource;
    OP_REQUIRES_OK(context, address_.Find(context, &resource));
    std::vector<std::string> inputs;
    for (int i = 0; i < context->num_inputs(); ++i) {
      const Tensor& name = context->input(i);
      OP_REQUIRES(context, name.dims() == 0,
                  absl::InvalidArgumentError(absl::StrCat("input ", i, " has shape ",
                                                          name.shape().DebugString(),
                                                          "; expected a scalar")));
      inputs.push_back(name.scalar<tstring>()());
    }
    InputWatches::Global().Watch(inputs, {resource->buffer(), timeout_millis_});
  }

 private:
  const BufferAddress address_;
  int64_t timeout_millis_ = 0;
};

// The restarts of several stages by one op, which ends with the last of them.
class JointRestart {
 public:
  JointRestart(OpKernelContext* context, size_t stages, AsyncOpKernel::DoneCallback done)
      : context_(context), left_(stages), done_(std::move(done)) {}

  void Note(const Outcome& outcome) {
    tensorflow::mutex_lock lock(mu_);
    status_.Update(ToStatus(outcome));
  }

  void EndOne() {
    if (left_.fetch_sub(1) > 1) return;
    {
      tensorflow::mutex_lock lock(mu_);
      if (!status_.ok()) context_->SetStatus(status_);
    }
    done_();
  }

 private:
  OpKernelContext* const context_;
  std::atomic<size_t> left_;
  const AsyncOpKernel::DoneCallback done_;
  tensorflow::mutex mu_;
  absl::Status status_ TF_GUARDED_BY(mu_);
};

class InputRestartOp : public AsyncOpKernel {
 public:
  using AsyncOpKernel::AsyncOpKernel;

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    std::string input;
    OP_REQUIRES_OK_ASYNC(context, NameOfInput(context, &input), done);
    const std::vector<InputWatch> watches = InputWatches::Global().Of(input);
    const int64_t step = context->step_id();
    for (const InputWatch& watch : watches) {
      // The step's end, of whatever kind, ends the restart.
      OP_REQUIRES_OK_ASYNC(
          context,
          AtStepEnd(context, [buffer = watch.buffer, step] { buffer->EndRestart(step); }), done);
    }
    if (watches.empty()) {
      done();
      return;
    }
    auto joint = std::make_shared<JointRestart>(context, watches.size(), std::move(done));
    for (const InputWatch& watch : watches) {
      auto call = StepCall::Begin(context, watch.buffer, [joint] { joint->EndOne(); });
      watch.buffer->Restart(call->ticket(), step, watch.timeout_millis,
                            [joint, call](const Outcome& outcome) {
                              joint->Note(outcome);
                              call->End(absl::OkStatus());
                            });
    }
  }

};

// Iterators prefer a CPU where a device is not asked for; what reads their handles goes with them.
REGISTER_GUARDED_KERNEL(Name("WorkbenchInputName").Device(DEVICE_CPU).Priority(2), InputNameOp);
REGISTER_GUARDED_KERNEL(
    Name("WorkbenchInputName").Device(DEVICE_GPU).HostMemory("handle").HostMemory("name").Priority(
        1),
    InputNameOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchInputRestart").Device(DEVICE_CPU).Priority(2),
                        InputRestartOp);
REGISTER_GUARDED_KERNEL(
    Name("WorkbenchInputRestart").Device(DEVICE_GPU).HostMemory("handle").Priority(1),
    InputRestartOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferWatch").Device(DEVICE_CPU), BufferWatchOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBufferWatch").Device(DEVICE_GPU).HostMemory("inputs"),
                        BufferWatchOp);

}  // namespace
}  // namespace workbench
