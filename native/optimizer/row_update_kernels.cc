// TensorFlow's helpers compute on its thread pool.
#define EIGEN_USE_THREADS

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "optimizer/row_updates.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/kernels/training_op_helpers.h"
#include "tensorflow/core/util/work_sharder.h"

namespace workbench {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using Device = Eigen::ThreadPoolDevice;

// As stock's SparseApplyAdagrad computes it, to the bit: 1 / √x and the reciprocal root of Eigen
// round differently, and training would drift apart.
struct StockAdagradRule : UpdateRule {
  float learning_rate = 0;
  void Update(int64_t dim, const float* grad, float* row, float* const* slots) const override {
    // Whole packets of TensorFlow's build have the reciprocal root, what is left of a row has not.
    const int64_t packed = dim - dim % kStockPacket;
    const Eigen::Map<const Eigen::ArrayXf> g(grad, packed);
    Eigen::Map<Eigen::ArrayXf> a(slots[0], packed), v(row, packed);
    a += g.square();
    v -= learning_rate * g * a.rsqrt();
    for (int64_t c = packed; c < dim; ++c) {
      slots[0][c] += grad[c] * grad[c];
      const float root = std::sqrt(slots[0][c]);
      // Stock has code of its own for tables of one column.
      const float step = learning_rate * grad[c];
      row[c] -= dim == 1 ? step / root : step * (1.0f / root);
    }
  }

  static constexpr int64_t kStockPacket = 8;
};

// Work, in nanoseconds, that other threads are woken for; other features keep them busy too.
constexpr int64_t kWorthThreads = 200'000;

// Of ref and of resource variables alike: the first inputs are the table and its slots.
template <typename Rule, int kSlots>
class RowUpdateOp : public OpKernel {
 public:
  explicit RowUpdateOp(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, c->GetAttr("use_locking", &use_locking_));
  }

  void Compute(OpKernelContext* c) override {
    OP_REQUIRES_OK(c, CheckTypes(c));
    std::vector<int> variables;
    for (int i = 0; i <= kSlots; ++i) variables.push_back(i);
    // Sparse: a variable that others read by value is copied once, not at every step.
    const auto locked = tensorflow::MaybeLockVariableInputMutexesInOrder<Device, float>(
        c, use_locking_, /*sparse=*/true, variables);
    Tensor held[kSlots + 1];
    for (int i = 0; i <= kSlots; ++i) {
      OP_REQUIRES_OK(c, (tensorflow::GetInputTensorFromVariable<Device, float>(
                            c, i, use_locking_, /*sparse=*/true, &held[i])));
    }
    const Tensor &rate = c->input(kSlots + 1), &grads = c->input(kSlots + 2),
                 &rows = c->input(kSlots + 3);
    OP_REQUIRES_OK(c, Check(held, rate, grads, rows));
    DenseTable table;
    table.values = held[0].template flat<float>().data();
    for (int s = 0; s < kSlots; ++s) table.slots[s] = held[s + 1].template flat<float>().data();
    table.slot_count = kSlots;
    table.dim = held[0].dim_size(1);
    Rule rule;
    rule.learning_rate = rate.scalar<float>()();
    const int64_t* at = rows.flat<int64_t>().data();
    const float* from = grads.flat<float>().data();
    const int64_t count = rows.NumElements();
    const int64_t cost = count * (kSlots + 1) * (10 + table.dim / 2);
    if (cost < kWorthThreads || !Ascending(at, count)) {
      UpdateRows(rule, table, at, from, 0, count);
      return;
    }
    const auto* threads = c->device()->tensorflow_cpu_worker_threads();
    tensorflow::Shard(threads->num_threads, threads->workers, count, cost / count,
                      [&](int64_t begin, int64_t end) {
                        UpdateRows(rule, table, at, from, begin, end);
                      });
  }

 private:
  // Before TensorFlow's helpers take a variable for one of floats.
  static absl::Status CheckTypes(OpKernelContext* c) {
    for (int i = 0; i <= kSlots && c->input_dtype(i) == tensorflow::DT_RESOURCE; ++i) {
      for (const auto& held : HandleFromInput(c, i).dtypes_and_shapes()) {
        if (held.dtype == tensorflow::DT_FLOAT) continue;
        return absl::InvalidArgumentError(absl::StrCat(
            i == 0 ? "the table" : "a slot of the table", " is of type ",
            tensorflow::DataTypeString(held.dtype), "; expected float32 of all"));
      }
    }
    return absl::OkStatus();
  }

  static absl::Status Check(const Tensor* held, const Tensor& rate, const Tensor& grads,
                            const Tensor& rows) {
    for (int i = 0; i <= kSlots; ++i) {
      if (!held[i].IsInitialized()) {
        return absl::FailedPreconditionError(
            absl::StrCat(i == 0 ? "the table" : "a slot of the table",
                         " is not initialized; run its initializer first"));
      }
      if (held[i].dtype() != tensorflow::DT_FLOAT || held[i].dims() != 2 ||
          held[i].shape() != held[0].shape()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "table and slots have shapes ", held[0].shape().DebugString(), " and ",
            held[i].shape().DebugString(), "; expected float32 [rows, dim] of all"));
      }
    }
    if (rate.dims() != 0 || rows.dims() != 1 || grads.dims() != 2 ||
        grads.dim_size(0) != rows.NumElements() || grads.dim_size(1) != held[0].dim_size(1)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "learning_rate ", rate.shape().DebugString(), ", gradients ",
          grads.shape().DebugString(), ", rows ", rows.shape().DebugString(),
          "; expected [], [n, ", held[0].dim_size(1), "] and [n]"));
    }
    const auto at = rows.flat<int64_t>();
    for (int64_t i = 0; i < at.size(); ++i) {
      if (at(i) < 0 || at(i) >= held[0].dim_size(0)) {
        return absl::InvalidArgumentError(absl::StrCat("rows[", i, "] is ", at(i),
                                                       ", not in [0, ", held[0].dim_size(0), ")"));
      }
    }
    return absl::OkStatus();
  }

  bool use_locking_ = false;
};

#define WORKBENCH_REGISTER(Optimizer, Rule, kSlots)                                               \
  REGISTER_KERNEL_BUILDER(                                                                        \
      Name("WorkbenchRowsApply" #Optimizer).Device(tensorflow::DEVICE_CPU),                       \
      RowUpdateOp<Rule, kSlots>);                                                                 \
  REGISTER_KERNEL_BUILDER(                                                                        \
      Name("WorkbenchResourceRowsApply" #Optimizer).Device(tensorflow::DEVICE_CPU),               \
      RowUpdateOp<Rule, kSlots>)
WORKBENCH_REGISTER(GradientDescent, GradientDescentRule, 0);
WORKBENCH_REGISTER(Adagrad, StockAdagradRule, 1);
#undef WORKBENCH_REGISTER

}  // namespace
}  // namespace workbench
