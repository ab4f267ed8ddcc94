// Kernels of dot interactions: examples on the intra-op threads.

#include <cstdint>
#include <optional>
#include <vector>

#include "combine/combine_calls.h"
#include "dense/interaction/dot_interaction.h"
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

// Multiplications that are worth another thread.
constexpr int64_t kDotWorthAThread = 1 << 20;

// What both directions have in common.
class DotInteractionKernel : public OpKernel {
 public:
  explicit DotInteractionKernel(OpKernelConstruction* c) : OpKernel(c) {
    int64_t vectors;
    std::vector<int64_t> places;
    OP_REQUIRES_OK(c, c->GetAttr("vectors", &vectors));
    OP_REQUIRES_OK(c, c->GetAttr("pairs", &places));
    for (const int64_t place : places) {
      // Divided, because a product may be more than an integer holds.
      OP_REQUIRES(c, place >= 0 && place / vectors < vectors,
                  absl::InvalidArgumentError(absl::StrCat("pair ", place, " is none of ", vectors,
                                                          " vectors; expected first * vectors + second")));
    }
    pairs_.emplace(vectors, places);
  }

 protected:
  const DotPairs& pairs() const { return *pairs_; }

  absl::Status RequireVectors(const Tensor& x) const {
    if (x.dims() == 3 && x.dim_size(1) == pairs_->vectors()) return absl::OkStatus();
    return WrongShape("x", x, absl::StrCat("[examples, ", pairs_->vectors(), ", dim]"));
  }

  // Runs `part` over ranges of examples.
  void ByExamples(OpKernelContext* c, const Tensor& x, const Part& part) const {
    ByCost(c, x.dim_size(0), x.NumElements() * pairs_->vectors(), part, kDotWorthAThread);
  }

 private:
  std::optional<DotPairs> pairs_;
};

class DotInteractionOp : public DotInteractionKernel {
 public:
  using DotInteractionKernel::DotInteractionKernel;

  void Compute(OpKernelContext* c) override {
    const Tensor& x = c->input(0);
    OP_REQUIRES_OK(c, RequireVectors(x));
    Tensor* dots = nullptr;
    OP_REQUIRES_OK(c, c->allocate_output(0, {x.dim_size(0), pairs().size()}, &dots));
    const float* from = x.flat<float>().data();
    float* to = dots->flat<float>().data();
    ByExamples(c, x, [&](int64_t begin, int64_t end) {
      pairs().Multiply(from, x.dim_size(2), begin, end, to);
    });
  }
};

class DotInteractionGradOp : public DotInteractionKernel {
 public:
  using DotInteractionKernel::DotInteractionKernel;

  void Compute(OpKernelContext* c) override {
    const Tensor &gradient = c->input(0), &x = c->input(1);
    OP_REQUIRES_OK(c, RequireVectors(x));
    const tensorflow::TensorShape like({x.dim_size(0), pairs().size()});
    OP_REQUIRES(c, gradient.shape() == like, WrongShape("gradient", gradient, like.DebugString()));
    Tensor* made = nullptr;
    OP_REQUIRES_OK(c, c->allocate_output(0, x.shape(), &made));
    const float *from = x.flat<float>().data(), *given = gradient.flat<float>().data();
    float* to = made->flat<float>().data();
    ByExamples(c, x, [&](int64_t begin, int64_t end) {
      pairs().MultiplyGradient(from, given, x.dim_size(2), begin, end, to);
    });
  }
};

REGISTER_GUARDED_KERNEL(Name("WorkbenchDotInteraction").Device(tensorflow::DEVICE_CPU), DotInteractionOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchDotInteractionGrad").Device(tensorflow::DEVICE_CPU),
                        DotInteractionGradOp);

}  // namespace
}  // namespace workbench
