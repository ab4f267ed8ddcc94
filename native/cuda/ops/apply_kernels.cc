// Kernels for a GPU of updates: of optimizer/row_update_ops.cc, and those that grouped lookups have
// their gradients applied by. They are put on the stream and never waited for.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cuda/calls.h"
#include "cuda/ops/device_context.h"
#include "cuda/ops/device_tables.h"
#include "cuda/ops/grouped_call.h"
#include "optimizer/rule_inputs.h"
#include "registration/guarded_kernel.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace workbench::cuda {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// A rule by its name in graphs; its numbers come with each step.
struct RuleOfOp {
  const RuleKind* kind = nullptr;
  RuleCall call;

  absl::Status Read(OpKernelConstruction* c, int64_t tables) {
    TF_RETURN_IF_ERROR(RuleOf(c, tables, &kind));
    const std::string name = kind->name;
    if (name == "adagrad_of_squares") {
      return absl::UnimplementedError("rule 'adagrad_of_squares' has no kernel for a GPU");
    }
    call.rule = name == "gradient_descent"   ? Rule::kGradientDescent
                : name == "adagrad"          ? Rule::kAdagrad
                : name == "row_wise_adagrad" ? Rule::kRowWiseAdagrad
                : name == "adam"             ? Rule::kAdam
                                             : Rule::kFtrl;
    return absl::OkStatus();
  }

  absl::Status ReadNumbers(OpKernelContext* c, RuleCall* to) const {
    std::vector<float> numbers;
    TF_RETURN_IF_ERROR(ReadScalars(c, &numbers));
    *to = call;
    std::copy(numbers.begin(), numbers.end(), to->numbers);
    return absl::OkStatus();
  }
};

// A table and its slots, of inputs that are held; slots are behind all tables.
absl::Status TableOf(const DeviceTables& held, const RuleKind& kind, int table, int tables,
                     TableCall* call) {
  const Tensor& values = held[table];
  if (values.dims() < 1) {
    return absl::InvalidArgumentError("a table has shape []; expected [rows, …]");
  }
  call->values = values.data();
  call->rows = values.dim_size(0);
  call->dim = call->rows == 0 ? 0 : values.NumElements() / call->rows;
  for (int s = 0; s < kind.slots; ++s) {
    const Tensor& slot = held[tables + table * kind.slots + s];
    const TensorShape expected =
        kind.slots_by_row ? TensorShape({values.dim_size(0)}) : values.shape();
    if (slot.shape() != expected) {
      return absl::InvalidArgumentError(
          absl::StrCat("a slot has shape ", slot.shape().DebugString(), "; expected ",
                       expected.DebugString()));
    }
    call->slots[s] = static_cast<float*>(slot.data());
  }
  return absl::OkStatus();
}

class GroupedApplyOp : public OpKernel {
 public:
  explicit GroupedApplyOp(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, attributes_.Read(c));
    OP_REQUIRES_OK(c, rule_.Read(c, attributes_.tables()));
    OP_REQUIRES_OK(c, ReadColumns(c, attributes_.all(), &columns_));
  }

  void Compute(OpKernelContext* c) override {
    OP_REQUIRES_OK(c, complaints_.Take(attributes_.names()));
    RuleCall rule;
    OP_REQUIRES_OK(c, rule_.ReadNumbers(c, &rule));
    GroupedCall call;
    OP_REQUIRES_OK(c, call.Read(c, attributes_, complaints_.word()));
    OP_REQUIRES_OK(c, call.ReadGradients(c, attributes_, &columns_));
    const int tables = attributes_.tables();
    DeviceTables held;
    OP_REQUIRES_OK(c, held.HoldToChange(c, tables * (1 + rule_.kind->slots)));
    for (int t = 0; t < tables; ++t) {
      OP_REQUIRES_OK(c, held.CheckTable(t, call.table(t)->dim));
      const int64_t dim = call.table(t)->dim;
      OP_REQUIRES_OK(c, TableOf(held, *rule_.kind, t, tables, call.table(t)));
      call.table(t)->dim = dim;
    }
    Tensor memory;
    OP_REQUIRES_OK(
        c, AllocateBytes(c, workbench_cuda_workspace(call.get(), Numbering::kNone), &memory));
    Touched touched;
    OP_REQUIRES_OK(c, CudaStatus(workbench_cuda_ask(StreamOf(c), call.get(), Numbering::kNone,
                                                    memory.data(), &touched),
                                 "ordering ids"));
    OP_REQUIRES_OK(c, CudaStatus(workbench_cuda_apply(StreamOf(c), call.get(), &touched, &rule),
                                 "an update"));
  }

 private:
  GroupedAttributes attributes_;
  RuleOfOp rule_;
  std::vector<int64_t> columns_;
  Complaints complaints_;
};

class RowsApplyOp : public OpKernel {
 public:
  explicit RowsApplyOp(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, rule_.Read(c, 1));
  }

  void Compute(OpKernelContext* c) override {
    OP_REQUIRES_OK(c, complaints_.Take({}));
    RuleCall rule;
    OP_REQUIRES_OK(c, rule_.ReadNumbers(c, &rule));
    DeviceTables held;
    OP_REQUIRES_OK(c, held.HoldToChange(c, 1 + rule_.kind->slots));
    RowsCall call;
    OP_REQUIRES_OK(c, TableOf(held, *rule_.kind, 0, 1, &call.table));
    const int last = c->num_inputs() - 1;
    const Tensor &gradients = c->input(last - 1), &rows = c->input(last);
    OP_REQUIRES_OK(c, Check(held[0].shape(), gradients, rows));
    call.rows = rows.flat<int64_t>().data();
    call.gradients = gradients.flat<float>().data();
    call.count = rows.NumElements();
    call.complaint = complaints_.word();
    Tensor memory;
    OP_REQUIRES_OK(c, AllocateBytes(c, workbench_cuda_rows_workspace(&call), &memory));
    OP_REQUIRES_OK(
        c, CudaStatus(workbench_cuda_rows_apply(StreamOf(c), &call, &rule, memory.data()),
                      "an update"));
  }

 private:
  static absl::Status Check(const TensorShape& table, const Tensor& gradients,
                            const Tensor& rows) {
    bool fit = rows.dims() == 1 && gradients.dims() == table.dims() &&
               gradients.dim_size(0) == rows.NumElements() &&
               rows.NumElements() < std::numeric_limits<int32_t>::max();
    for (int d = 1; fit && d < table.dims(); ++d) {
      fit = gradients.dim_size(d) == table.dim_size(d);
    }
    if (fit) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "gradients ", gradients.shape().DebugString(), " and rows ", rows.shape().DebugString(),
        " of a table ", table.DebugString(),
        "; expected [n, …] as the table, and [n], n below what int32 counts"));
  }

  RuleOfOp rule_;
  Complaints complaints_;
};

#define WORKBENCH_REGISTER(Id)                                                \
  REGISTER_GUARDED_KERNEL(Name("WorkbenchGroupedApply")                       \
                              .Device(tensorflow::DEVICE_GPU)                 \
                              .HostMemory("dense_shapes")                     \
                              .HostMemory("scalars")                          \
                              .TypeConstraint<float>("T")                     \
                              .TypeConstraint<Id>("Tid"),                     \
                          GroupedApplyOp);                                    \
  REGISTER_GUARDED_KERNEL(Name("WorkbenchResourceGroupedApply")               \
                              .Device(tensorflow::DEVICE_GPU)                 \
                              .HostMemory("tables")                           \
                              .HostMemory("slots")                            \
                              .HostMemory("dense_shapes")                     \
                              .HostMemory("scalars")                          \
                              .TypeConstraint<float>("T")                     \
                              .TypeConstraint<Id>("Tid"),                     \
                          GroupedApplyOp)
WORKBENCH_REGISTER(int32_t);
WORKBENCH_REGISTER(int64_t);
#undef WORKBENCH_REGISTER

REGISTER_GUARDED_KERNEL(
    Name("WorkbenchRowsApply").Device(tensorflow::DEVICE_GPU).HostMemory("scalars"), RowsApplyOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchResourceRowsApply")
                            .Device(tensorflow::DEVICE_GPU)
                            .HostMemory("table")
                            .HostMemory("slots")
                            .HostMemory("scalars"),
                        RowsApplyOp);

}  // namespace
}  // namespace workbench::cuda
