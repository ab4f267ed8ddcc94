// Kernels of batch normalization: columns on the intra-op threads.

#include <cstdint>

#include "combine/combine_calls.h"
#include "dense/norm/batch_norm.h"
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

// Columns of whole cache lines.
constexpr int64_t kLine = 16;
constexpr int64_t kWide = 64;
// Numbers that are worth another thread.
constexpr int64_t kNormWorthAThread = 1 << 15;

absl::Status RequireMatrix(const char* name, const Tensor& found) {
  if (found.dims() == 2) return absl::OkStatus();
  return WrongShape(name, found, "a matrix");
}

absl::Status RequireShape(const char* name, const Tensor& found, const tensorflow::TensorShape& like) {
  if (found.shape() == like) return absl::OkStatus();
  return WrongShape(name, found, like.DebugString());
}

// Runs `part` over ranges of columns; each a few wide, so that all threads have some.
void ByColumnRanges(OpKernelContext* c, int64_t rows, int64_t columns, const Part& part) {
  const int64_t threads = WorthThreads(c, rows * columns, kNormWorthAThread);
  const int64_t each = RangeSize(columns, threads);
  const int64_t whole = each >= kWide ? kWide : kLine;
  ByRanges(threads, columns, (each + whole - 1) / whole * whole, part);
}

// What both directions have in common.
class BatchNormKernel : public OpKernel {
 public:
  explicit BatchNormKernel(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, c->GetAttr("epsilon", &epsilon_));
  }

 protected:
  absl::Status Read(const Tensor& x, const Tensor& gamma, NormedColumns* in) const {
    TF_RETURN_IF_ERROR(RequireMatrix("x", x));
    TF_RETURN_IF_ERROR(RequireShape("gamma", gamma, Columns(x)));
    *in = {x.flat<float>().data(), x.dim_size(0), x.dim_size(1), gamma.flat<float>().data(), epsilon_};
    return absl::OkStatus();
  }

  static tensorflow::TensorShape Columns(const Tensor& x) {
    return tensorflow::TensorShape({x.dim_size(1)});
  }

  // Allocates an output of float32.
  static absl::Status Make(OpKernelContext* c, int output, const tensorflow::TensorShape& shape,
                           float** data) {
    Tensor* made = nullptr;
    TF_RETURN_IF_ERROR(c->allocate_output(output, shape, &made));
    *data = made->flat<float>().data();
    return absl::OkStatus();
  }

 private:
  float epsilon_ = 0;
};

class BatchNormOp : public BatchNormKernel {
 public:
  using BatchNormKernel::BatchNormKernel;

  void Compute(OpKernelContext* c) override {
    const Tensor &x = c->input(0), &beta = c->input(2);
    NormedColumns in;
    OP_REQUIRES_OK(c, Read(x, c->input(1), &in));
    OP_REQUIRES_OK(c, RequireShape("beta", beta, Columns(x)));
    float *y, *mean, *variance;
    OP_REQUIRES_OK(c, Make(c, 0, x.shape(), &y));
    OP_REQUIRES_OK(c, Make(c, 1, Columns(x), &mean));
    OP_REQUIRES_OK(c, Make(c, 2, Columns(x), &variance));
    const float* added = beta.flat<float>().data();
    ByColumnRanges(c, in.rows, in.columns, [&](int64_t begin, int64_t end) {
      NormalizeColumns(in, added, begin, end, y, mean, variance);
    });
  }
};

class BatchNormGradOp : public BatchNormKernel {
 public:
  explicit BatchNormGradOp(OpKernelConstruction* c) : BatchNormKernel(c) {
    OP_REQUIRES_OK(c, c->GetAttr("of_relu", &of_relu_));
  }

  void Compute(OpKernelContext* c) override {
    const Tensor &gradient = c->input(0), &x = c->input(1), &mean = c->input(3), &variance = c->input(4);
    NormedColumns in;
    OP_REQUIRES_OK(c, Read(x, c->input(2), &in));
    OP_REQUIRES_OK(c, RequireShape("gradient", gradient, x.shape()));
    OP_REQUIRES_OK(c, RequireShape("mean", mean, Columns(x)));
    OP_REQUIRES_OK(c, RequireShape("variance", variance, Columns(x)));
    NormGradients to;
    OP_REQUIRES_OK(c, Make(c, 0, x.shape(), &to.x));
    OP_REQUIRES_OK(c, Make(c, 1, Columns(x), &to.gamma));
    OP_REQUIRES_OK(c, Make(c, 2, Columns(x), &to.beta));
    OP_REQUIRES_OK(c, Make(c, 3, of_relu_ ? Columns(x) : tensorflow::TensorShape({0}), &to.bias));
    if (!of_relu_) to.bias = nullptr;
    const float *given = gradient.flat<float>().data(), *means = mean.flat<float>().data(),
                *variances = variance.flat<float>().data();
    ByColumnRanges(c, in.rows, in.columns, [&](int64_t begin, int64_t end) {
      NormalizeColumnsGradient(in, means, variances, given, begin, end, to);
    });
  }

 private:
  bool of_relu_ = false;
};

REGISTER_GUARDED_KERNEL(Name("WorkbenchBatchNorm").Device(tensorflow::DEVICE_CPU), BatchNormOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchBatchNormGrad").Device(tensorflow::DEVICE_CPU), BatchNormGradOp);

}  // namespace
}  // namespace workbench
