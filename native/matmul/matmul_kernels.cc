// The kernel of products: panels and blocks on the intra-op threads.

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "combine/combine_calls.h"
#include "matmul/matmul.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "versions/fixed_blocks.h"

namespace workbench {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// Multiplications that are worth another thread.
constexpr int64_t kWorthAThread = 1 << 21;
// A thread that comes late leaves blocks to the others.
constexpr int64_t kBlocksOfThread = 2;

class MatMulOp : public OpKernel {
 public:
  explicit MatMulOp(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, c->GetAttr("transpose_a", &transpose_a_));
    OP_REQUIRES_OK(c, c->GetAttr("transpose_b", &transpose_b_));
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
    Tensor* product = nullptr;
    OP_REQUIRES_OK(c, c->allocate_output(0, shape, &product));
    if (shape.num_elements() == 0) return;
    float* to = product->flat<float>().data();
    if (inner == 0) {
      std::fill_n(to, shape.num_elements(), 0.0f);
      return;
    }
    Factors factors{a.flat<float>().data(), b.flat<float>().data(), shape.dim_size(0),
                    shape.dim_size(1), inner, transpose_a_, transpose_b_};
    OP_REQUIRES_OK(c, Multiply(c, factors, to));
  }

 private:
  absl::Status Multiply(OpKernelContext* c, const Factors& factors, float* to) const {
    const int64_t cost = factors.rows * factors.columns * factors.inner;
    const auto* threads = c->device()->tensorflow_cpu_worker_threads();
    const int64_t parts = std::min<int64_t>(threads->num_threads, 1 + cost / kWorthAThread);
    const MatMul product(factors, parts == 1 ? 1 : parts * kBlocksOfThread);
    Tensor panels;
    TF_RETURN_IF_ERROR(
        c->allocate_temp(tensorflow::DT_FLOAT, TensorShape({product.packed_size()}), &panels));
    float* packed = panels.flat<float>().data();
    ByFewRanges(c, product.panels(), cost, kWorthAThread,
                [&](int64_t begin, int64_t end) { product.Pack(begin, end, packed); });
    threads->workers->ParallelFor(
        product.blocks(), FixedBlocks(parts == 1 ? product.blocks() : 1),
        [&](int64_t begin, int64_t end) { product.Multiply(packed, begin, end, to); });
    return absl::OkStatus();
  }

  bool transpose_a_, transpose_b_;
};

REGISTER_KERNEL_BUILDER(Name("WorkbenchMatMul").Device(tensorflow::DEVICE_CPU), MatMulOp);

}  // namespace
}  // namespace workbench
