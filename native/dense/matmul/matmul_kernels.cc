// The kernel of products: panels, then blocks, on as many threads as there are intra-op threads.

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "dense/matmul/matmul.h"
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

// Products of numbers that are worth another thread, and most of a block: a thread that loses its
// core has others wait for the one that it is at.
constexpr int64_t kProductsOfThread = 1 << 21;
constexpr int64_t kProductsOfBlock = 1 << 24;
// But each block reads all of b.
constexpr int64_t kFewestRows = 32;

class MatMulOp : public OpKernel {
 public:
  explicit MatMulOp(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, c->GetAttr("transpose_a", &transpose_a_));
    OP_REQUIRES_OK(c, c->GetAttr("transpose_b", &transpose_b_));
    OP_REQUIRES_OK(c, c->GetAttr("biases", &biases_));
    OP_REQUIRES_OK(c, c->GetAttr("relu", &relu_));
    OP_REQUIRES(c, biases_ <= 1,
                absl::InvalidArgumentError(absl::StrCat(biases_, " biases; expected at most 1")));
  }

  void Compute(OpKernelContext* c) override {
    const Tensor &a = c->input(0), &b = c->input(1);
    for (const Tensor* each : {&a, &b}) {
      OP_REQUIRES(c, each->dims() == 2,
                  absl::InvalidArgumentError(absl::StrCat(
                      "In[", each == &b, "] is not a matrix. Instead it has shape ",
                      each->shape().DebugString())));
    }
    const int64_t inner = a.dim_size(transpose_a_ ? 0 : 1);
    OP_REQUIRES(c, inner == b.dim_size(transpose_b_ ? 1 : 0),
                absl::InvalidArgumentError(absl::StrCat(
                    "Matrix size-incompatible: In[0]: ", a.shape().DebugString(),
                    ", In[1]: ", b.shape().DebugString())));
    const TensorShape shape({a.dim_size(transpose_a_ ? 1 : 0), b.dim_size(transpose_b_ ? 0 : 1)});
    if (biases_ > 0) {
      const Tensor& bias = c->input(2);
      OP_REQUIRES(c, bias.dims() == 1 && bias.dim_size(0) == shape.dim_size(1),
                  absl::InvalidArgumentError(absl::StrCat(
                      "Must provide as many biases as the last dimension of the product: ",
                      bias.shape().DebugString(), " vs. ", shape.DebugString())));
    }
    Tensor* product = nullptr;
    OP_REQUIRES_OK(c, c->allocate_output(0, shape, &product));
    if (shape.num_elements() == 0) return;
    Product given{a.flat<float>().data(), b.flat<float>().data(), shape.dim_size(0),
                  shape.dim_size(1), inner, transpose_a_, transpose_b_};
    given.relu = relu_;
    if (biases_ > 0) given.bias = c->input(2).flat<float>().data();
    OP_REQUIRES_OK(c, Multiply(c, given, product->flat<float>().data()));
  }

 private:
  absl::Status Multiply(OpKernelContext* c, const Product& given, float* to) const {
    const int64_t cost = given.rows * given.columns * given.inner;
    const int64_t threads = WorthThreads(c, cost, kProductsOfThread);
    const int64_t small = std::min(cost / kProductsOfBlock, given.rows / kFewestRows);
    const int64_t blocks = std::max(threads * kRangesOfThread, small);
    const MatMul product(given, threads == 1 ? 1 : blocks);
    Tensor panels;
    TF_RETURN_IF_ERROR(
        c->allocate_temp(tensorflow::DT_FLOAT, TensorShape({product.packed_size()}), &panels));
    float* packed = panels.flat<float>().data();
    const auto pack = [&](int64_t begin, int64_t end) { product.Pack(begin, end, packed); };
    const auto multiply = [&](int64_t begin, int64_t end) {
      product.Multiply(packed, begin, end, to);
    };
    RunShared({{product.copies(), 1, pack}, {product.blocks(), 1, multiply}}, threads - 1);
    return absl::OkStatus();
  }

  bool transpose_a_, transpose_b_, relu_;
  int biases_;
};

REGISTER_GUARDED_KERNEL(Name("WorkbenchMatMul").Device(tensorflow::DEVICE_CPU), MatMulOp);

}  // namespace
}  // namespace workbench
