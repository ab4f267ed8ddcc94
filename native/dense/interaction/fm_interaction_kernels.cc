// Kernels of the interaction of a factorization machine: examples on the intra-op threads.

#include <cstdint>

#include "combine/combine_calls.h"
#include "dense/interaction/fm_interaction.h"
#include "registration/guarded_kernel.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "threading/intra_op_threads.h"

namespace workbench {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// Numbers read that are worth another thread.
constexpr int64_t kFmWorthAThread = 1 << 17;

absl::Status RequireVectors(const Tensor& x) {
  return x.dims() == 3 ? absl::OkStatus() : WrongShape("x", x, "[examples, vectors, dim]");
}

void ByExamples(OpKernelContext* c, const Tensor& x, const Part& part) {
  ByCost(c, x.dim_size(0), x.NumElements(), part, kFmWorthAThread);
}

class FmInteractionOp : public OpKernel {
 public:
  explicit FmInteractionOp(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, c->GetAttr("keep_dims", &keep_dims_));
  }

  void Compute(OpKernelContext* c) override {
    const Tensor& x = c->input(0);
    OP_REQUIRES_OK(c, RequireVectors(x));
    TensorShape shape({x.dim_size(0), x.dim_size(2)});
    if (keep_dims_) shape.InsertDim(1, 1);
    Tensor* made = nullptr;
    OP_REQUIRES_OK(c, c->allocate_output(0, shape, &made));
    const float* from = x.flat<float>().data();
    float* to = made->flat<float>().data();
    ByExamples(c, x, [&](int64_t begin, int64_t end) {
      FmInteraction(from, x.dim_size(1), x.dim_size(2), begin, end, to);
    });
  }

 private:
  bool keep_dims_ = false;
};

class FmInteractionGradOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* c) override {
    const Tensor &gradient = c->input(0), &x = c->input(1);
    OP_REQUIRES_OK(c, RequireVectors(x));
    const TensorShape like({x.dim_size(0), x.dim_size(2)}), kept({x.dim_size(0), 1, x.dim_size(2)});
    OP_REQUIRES(c, gradient.shape() == like || gradient.shape() == kept,
                WrongShape("gradient", gradient, like.DebugString()));
    Tensor* made = nullptr;
    OP_REQUIRES_OK(c, c->allocate_output(0, x.shape(), &made));
    const float *from = x.flat<float>().data(), *given = gradient.flat<float>().data();
    float* to = made->flat<float>().data();
    ByExamples(c, x, [&](int64_t begin, int64_t end) {
      FmInteractionGradient(from, given, x.dim_size(1), x.dim_size(2), begin, end, to);
    });
  }
};

REGISTER_GUARDED_KERNEL(Name("WorkbenchFmInteraction").Device(tensorflow::DEVICE_CPU), FmInteractionOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchFmInteractionGrad").Device(tensorflow::DEVICE_CPU),
                        FmInteractionGradOp);

}  // namespace
}  // namespace workbench
