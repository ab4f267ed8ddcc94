// Kernels of the ops of choices. TensorFlow asks for kernels when it places a graph; none of them runs.

#include "absl/strings/str_cat.h"
#include "registration/guarded_kernel.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace workbench {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;

class NeverRunOp : public OpKernel {
 public:
  explicit NeverRunOp(OpKernelConstruction* c) : OpKernel(c) {}

  void Compute(OpKernelContext* c) override {
    c->SetStatus(absl::InternalError(absl::StrCat(
        "'", name(), "' is still a choice between two nodes: no graph pass of Workbench has seen "
        "this run; expected a session of this process, or a server that has loaded the library")));
  }
};

REGISTER_GUARDED_KERNEL(Name("WorkbenchChoice").Device(tensorflow::DEVICE_CPU), NeverRunOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchChoice").Device(tensorflow::DEVICE_GPU), NeverRunOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBranch").Device(tensorflow::DEVICE_CPU), NeverRunOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBranch").Device(tensorflow::DEVICE_GPU), NeverRunOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchChoiceRef").Device(tensorflow::DEVICE_CPU), NeverRunOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchChoiceRef").Device(tensorflow::DEVICE_GPU), NeverRunOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchChoiceWait").Device(tensorflow::DEVICE_CPU), NeverRunOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchChoiceWait").Device(tensorflow::DEVICE_GPU), NeverRunOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchChoiceInput").Device(tensorflow::DEVICE_CPU), NeverRunOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchChoiceInput").Device(tensorflow::DEVICE_GPU), NeverRunOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchChoiceSource").Device(tensorflow::DEVICE_CPU), NeverRunOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchChoiceSource").Device(tensorflow::DEVICE_GPU), NeverRunOp);

}  // namespace
}  // namespace workbench
