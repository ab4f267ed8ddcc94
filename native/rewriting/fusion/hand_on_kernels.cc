#include "registration/guarded_kernel.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/register_types.h"

namespace workbench {
namespace {

class HandOnOp : public tensorflow::OpKernel {
 public:
  explicit HandOnOp(tensorflow::OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(tensorflow::OpKernelContext* context) override {
    context->set_output(0, context->input(0));
  }

  bool IsExpensive() override { return false; }
};

REGISTER_GUARDED_KERNEL(Name("WorkbenchHandOn").Device(tensorflow::DEVICE_CPU), HandOnOp);

// What TensorFlow's Identity has on the host.
#define REGISTER_ON_HOST(type)                                    \
  REGISTER_GUARDED_KERNEL(Name("WorkbenchHandOn")                 \
                              .Device(tensorflow::DEVICE_GPU)     \
                              .HostMemory("input")                \
                              .HostMemory("output")               \
                              .TypeConstraint<type>("T"),         \
                          HandOnOp)
#define REGISTER_ON_GPU(type)                                     \
  REGISTER_GUARDED_KERNEL(Name("WorkbenchHandOn")                 \
                              .Device(tensorflow::DEVICE_GPU)     \
                              .TypeConstraint<type>("T"),         \
                          HandOnOp)

REGISTER_ON_HOST(tensorflow::int32);
REGISTER_ON_HOST(tensorflow::tstring);
REGISTER_ON_GPU(bool);
REGISTER_ON_GPU(int64_t);
TF_CALL_GPU_NUMBER_TYPES(REGISTER_ON_GPU);

}  // namespace
}  // namespace workbench
