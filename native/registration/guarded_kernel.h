#ifndef WORKBENCH_REGISTRATION_GUARDED_KERNEL_H_
#define WORKBENCH_REGISTRATION_GUARDED_KERNEL_H_

#include <type_traits>
#include <utility>

#include "registration/caught.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace workbench {

// A kernel out of which no exception comes.
template <class Kernel, bool kAsync = std::is_base_of_v<tensorflow::AsyncOpKernel, Kernel>>
class Guarded : public Kernel {
 public:
  using Kernel::Kernel;

  void Compute(tensorflow::OpKernelContext* context) override {
    const absl::Status status = Caught([&] { Kernel::Compute(context); });
    if (!status.ok()) context->SetStatus(status);
  }
};

// One that throws has not called `done`, nor left it with another thread.
template <class Kernel>
class Guarded<Kernel, true> : public Kernel {
 public:
  using Kernel::Kernel;

  void ComputeAsync(tensorflow::OpKernelContext* context,
                    tensorflow::AsyncOpKernel::DoneCallback done) override {
    const absl::Status status = Caught([&] { Kernel::ComputeAsync(context, done); });
    if (status.ok()) return;
    context->SetStatus(status);
    done();
  }
};

}  // namespace workbench

// As REGISTER_KERNEL_BUILDER; all kernels are registered by it.
#define REGISTER_GUARDED_KERNEL(builder, ...) \
  REGISTER_KERNEL_BUILDER(builder, ::workbench::Guarded<__VA_ARGS__>)

#endif  // WORKBENCH_REGISTRATION_GUARDED_KERNEL_H_
