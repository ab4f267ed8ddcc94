// The kernels of row_update_ops.cc.

#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"
#include "optimizer/row_updates.h"
#include "optimizer/rule_inputs.h"
#include "registration/guarded_kernel.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/util/work_sharder.h"

namespace workbench {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

// Work, in nanoseconds, that other threads are woken for; other features keep them busy too.
constexpr int64_t kWorthThreads = 200'000;

// Of ref and of resource variables alike.
class RowUpdateOp : public OpKernel {
 public:
  explicit RowUpdateOp(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, RuleOf(c, 1, &kind_));
    OP_REQUIRES_OK(c, c->GetAttr("use_locking", &use_locking_));
  }

  void Compute(OpKernelContext* c) override {
    std::unique_ptr<UpdateRule> rule;
    OP_REQUIRES_OK(c, ReadRule(c, *kind_, &rule));
    HeldTables tables;
    OP_REQUIRES_OK(c, tables.Hold(c, *kind_, 1, use_locking_));
    const HeldTable& held = tables[0];
    const int last = c->num_inputs() - 1;
    const Tensor &grads = c->input(last - 1), &rows = c->input(last);
    OP_REQUIRES_OK(c, Check(held, grads, rows));
    const int64_t* at = rows.flat<int64_t>().data();
    const float* from = grads.flat<float>().data();
    const int64_t count = rows.NumElements();
    const int64_t cost = count * CostOfUpdate(held.table());
    if (cost < kWorthThreads || !Ascending(at, count)) {
      UpdateRows(*rule, held.table(), at, from, 0, count);
      return;
    }
    const auto* threads = c->device()->tensorflow_cpu_worker_threads();
    tensorflow::Shard(threads->num_threads, threads->workers, count, cost / count,
                      [&](int64_t begin, int64_t end) {
                        UpdateRows(*rule, held.table(), at, from, begin, end);
                      });
  }

 private:
  static absl::Status Check(const HeldTable& held, const Tensor& grads, const Tensor& rows) {
    // Dimension by dimension: a shape of all that is expected may have too many values.
    bool fit = rows.dims() == 1 && grads.dims() == held.shape().dims() &&
               grads.dim_size(0) == rows.NumElements();
    for (int d = 1; fit && d < grads.dims(); ++d) {
      fit = grads.dim_size(d) == held.shape().dim_size(d);
    }
    if (!fit) {
      return absl::InvalidArgumentError(absl::StrCat(
          "gradients ", grads.shape().DebugString(), " and rows ", rows.shape().DebugString(),
          " of a table ", held.shape().DebugString(), "; expected [n, …] as the table, and [n]"));
    }
    const auto at = rows.flat<int64_t>();
    for (int64_t i = 0; i < at.size(); ++i) {
      if (at(i) < 0 || at(i) >= held.rows()) {
        return absl::InvalidArgumentError(
            absl::StrCat("rows[", i, "] is ", at(i), ", not in [0, ", held.rows(), ")"));
      }
    }
    return absl::OkStatus();
  }

  const RuleKind* kind_ = nullptr;
  bool use_locking_ = false;
};

REGISTER_GUARDED_KERNEL(Name("WorkbenchRowsApply").Device(tensorflow::DEVICE_CPU), RowUpdateOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchResourceRowsApply").Device(tensorflow::DEVICE_CPU),
                        RowUpdateOp);

}  // namespace
}  // namespace workbench
