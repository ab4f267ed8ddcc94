// The kernels of adam_ops.cc: ranges of a variable on the intra-op threads.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dense/adam/adam.h"
#include "optimizer/rule_inputs.h"
#include "optimizer/rule_steps.h"
#include "registration/guarded_kernel.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/kernels/training_op_helpers.h"
#include "threading/intra_op_threads.h"

namespace workbench {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using Device = Eigen::ThreadPoolDevice;

constexpr int kHeld = 3, kScalars = 6;
// Nanoseconds that a value takes, and values of whole cache lines.
constexpr int64_t kCostOfValue = 1, kValues = 1024;

// Of ref and of resource variables alike.
class AdamOp : public OpKernel {
 public:
  explicit AdamOp(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, c->GetAttr("use_locking", &use_locking_));
    OP_REQUIRES_OK(c, c->GetAttr("use_nesterov", &nesterov_));
  }

  void Compute(OpKernelContext* c) override {
    const std::vector<int> inputs = {0, 1, 2};
    OP_REQUIRES_OK(c, RequireFloats(c, inputs, 1));
    const auto locks = tensorflow::MaybeLockVariableInputMutexesInOrder<Device, float>(
        c, use_locking_, /*sparse=*/false, inputs);
    Tensor held[kHeld];
    for (int i : inputs) {
      OP_REQUIRES_OK(c, (tensorflow::GetInputTensorFromVariable<Device, float>(
                            c, i, use_locking_, /*sparse=*/false, &held[i])));
    }
    OP_REQUIRES_OK(c, Check(c, held));
    DenseAdam adam;
    OP_REQUIRES_OK(c, Read(c, &adam));
    const float* grad = c->input(kHeld + kScalars).flat<float>().data();
    float* at[kHeld];
    for (int i : inputs) at[i] = held[i].flat<float>().data();
    const int64_t count = held[0].NumElements();
    const int64_t lines = (count + kValues - 1) / kValues;
    ByCost(c, lines, count * kCostOfValue, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * kValues, own = std::min(end * kValues, count) - first;
      AdamSteps(adam, own, grad + first, at[0] + first, at[1] + first, at[2] + first);
    });
    if (c->input_dtype(0) != tensorflow::DT_RESOURCE) c->forward_ref_input_to_ref_output(0, 0);
  }

 private:
  static absl::Status Check(OpKernelContext* c, const Tensor (&held)[kHeld]) {
    const Tensor& grad = c->input(kHeld + kScalars);
    for (int i = 0; i < kHeld; ++i) {
      const char* name = i == 0 ? "var" : i == 1 ? "m" : "v";
      if (!held[i].IsInitialized()) {
        return absl::FailedPreconditionError(
            absl::StrCat(name, " is not initialized; run its initializer first"));
      }
      if (held[i].dtype() != tensorflow::DT_FLOAT || held[i].shape() != grad.shape()) {
        return absl::InvalidArgumentError(absl::StrCat(
            name, " and grad do not have the same shape ", held[i].shape().DebugString(), " ",
            grad.shape().DebugString()));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Read(OpKernelContext* c, DenseAdam* adam) const {
    float scalars[kScalars];
    for (int i = 0; i < kScalars; ++i) {
      const Tensor& each = c->input(kHeld + i);
      if (each.dims() != 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("a number of Adam is not a scalar: ", each.shape().DebugString()));
      }
      scalars[i] = each.scalar<float>()();
    }
    const auto [beta1_power, beta2_power, rate, beta1, beta2, epsilon] = scalars;
    *adam = {AdamRate(rate, beta1_power, beta2_power), beta1, 1 - beta1, 1 - beta2, epsilon,
             nesterov_};
    return absl::OkStatus();
  }

  bool use_locking_ = false, nesterov_ = false;
};

REGISTER_GUARDED_KERNEL(Name("WorkbenchApplyAdam").Device(tensorflow::DEVICE_CPU), AdamOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchResourceApplyAdam").Device(tensorflow::DEVICE_CPU), AdamOp);

}  // namespace
}  // namespace workbench
