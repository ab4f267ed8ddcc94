// Kernels for a GPU of grouped lookups, see lookup/grouped/grouped_ops.cc.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cuda/calls.h"
#include "cuda/ops/device_context.h"
#include "cuda/ops/device_tables.h"
#include "cuda/ops/grouped_call.h"
#include "registration/guarded_kernel.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace workbench::cuda {
namespace {

using tensorflow::AsyncOpKernel;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::OpOutputList;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// An op that reads the tables of a grouped lookup, and waits for nothing.
class GroupedReadOp : public OpKernel {
 public:
  explicit GroupedReadOp(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, attributes_.Read(c));
    OP_REQUIRES_OK(c, c->GetAttr("T", &type_));
  }

  void Compute(OpKernelContext* c) override {
    OP_REQUIRES_OK(c, complaints_.Take(attributes_.names()));
    DeviceTables tables;
    OP_REQUIRES_OK(c, tables.HoldToRead(c, attributes_.tables(), type_));
    GroupedCall call;
    OP_REQUIRES_OK(c, call.Read(c, attributes_, complaints_.word()));
    OP_REQUIRES_OK(c, call.ReadTables(tables));
    OP_REQUIRES_OK(c, Launch(c, attributes_, &call));
  }

 protected:
  virtual absl::Status Launch(OpKernelContext* c, const GroupedAttributes& attributes,
                              GroupedCall* call) = 0;

 private:
  GroupedAttributes attributes_;
  tensorflow::DataType type_;
  Complaints complaints_;
};

class GroupedLookUpOp : public GroupedReadOp {
  using GroupedReadOp::GroupedReadOp;

  absl::Status Launch(OpKernelContext* c, const GroupedAttributes& attributes,
                      GroupedCall* call) override {
    TF_RETURN_IF_ERROR(call->AllocateVectors(c, attributes));
    return CudaStatus(workbench_cuda_look_up(StreamOf(c), call->get()), "a lookup");
  }
};

class GroupedWeightGradOp : public GroupedReadOp {
  using GroupedReadOp::GroupedReadOp;

  absl::Status Launch(OpKernelContext* c, const GroupedAttributes& attributes,
                      GroupedCall* call) override {
    TF_RETURN_IF_ERROR(call->ReadGradients(c, attributes, nullptr));
    TF_RETURN_IF_ERROR(call->AllocateWeightGradients(c, attributes));
    return CudaStatus(workbench_cuda_weight_gradients(StreamOf(c), call->get()),
                      "a gradient of weights");
  }
};

// How many rows each table has gradients of the GPU finds: the numbers come to the host meanwhile,
// and no thread waits for them.
class GroupedLookUpGradOp : public AsyncOpKernel {
 public:
  explicit GroupedLookUpGradOp(OpKernelConstruction* c) : AsyncOpKernel(c) {
    OP_REQUIRES_OK(c, attributes_.Read(c));
    std::vector<int64_t> zero_ids;
    OP_REQUIRES_OK(c, c->GetAttr("zero_ids", &zero_ids));
    OP_REQUIRES(c, std::all_of(zero_ids.begin(), zero_ids.end(), [](int64_t id) { return id < 0; }),
                absl::UnimplementedError("zero_ids; a GPU has no kernel for it"));
  }

  void ComputeAsync(OpKernelContext* c, DoneCallback done) override {
    OP_REQUIRES_OK_ASYNC(c, complaints_.Take(attributes_.names()), done);
    auto work = std::make_shared<Work>();
    OP_REQUIRES_OK_ASYNC(c, FindTouched(c, work.get()), done);
    WhenDone(c, [this, c, done = std::move(done), work] {
      OP_REQUIRES_OK_ASYNC(c, Sum(c, *work), done);
      done();
    });
  }

 private:
  struct Work {
    GroupedCall call;
    Touched touched;
    Tensor memory;
    Tensor firsts;  // of each table the number of its first row, and the end; on the host
  };

  absl::Status FindTouched(OpKernelContext* c, Work* work) {
    TF_RETURN_IF_ERROR(work->call.Read(c, attributes_, complaints_.word()));
    TF_RETURN_IF_ERROR(work->call.ReadGradients(c, attributes_, nullptr));
    const GroupCall* call = work->call.get();
    TF_RETURN_IF_ERROR(
        AllocateBytes(c, workbench_cuda_workspace(call, Numbering::kTouched), &work->memory));
    TF_RETURN_IF_ERROR(CudaStatus(workbench_cuda_ask(StreamOf(c), call, Numbering::kTouched,
                                                     work->memory.data(), &work->touched),
                                  "ordering ids"));
    const int64_t numbers = attributes_.tables() + 1;
    TF_RETURN_IF_ERROR(AllocateOnHost(c, numbers, &work->firsts));
    return CudaStatus(workbench_cuda_copy(StreamOf(c), work->touched.table_firsts,
                                          numbers * sizeof(int32_t), work->firsts.data()),
                      "counting rows");
  }

  absl::Status Sum(OpKernelContext* c, const Work& work) const {
    OpOutputList rows, gradients;
    TF_RETURN_IF_ERROR(c->output_list("table_rows", &rows));
    TF_RETURN_IF_ERROR(c->output_list("row_gradients", &gradients));
    const auto firsts = work.firsts.flat<int32_t>();
    for (int t = 0; t < attributes_.tables(); ++t) {
      const int64_t begin = firsts(t), count = firsts(t + 1) - begin;
      Tensor *at = nullptr, *to = nullptr;
      TF_RETURN_IF_ERROR(rows.allocate(t, TensorShape({count}), &at));
      TF_RETURN_IF_ERROR(
          gradients.allocate(t, TensorShape({count, attributes_.all().dims()[t]}), &to));
      TF_RETURN_IF_ERROR(CudaStatus(
          workbench_cuda_sum(StreamOf(c), work.call.get(), &work.touched, t, begin, count,
                             at->flat<int64_t>().data(), to->data()),
          "a gradient"));
    }
    return absl::OkStatus();
  }

  GroupedAttributes attributes_;
  Complaints complaints_;
};

#define WORKBENCH_REGISTER(T, Id)                                             \
  REGISTER_GUARDED_KERNEL(Name("WorkbenchGroupedLookUp")                      \
                              .Device(tensorflow::DEVICE_GPU)                 \
                              .HostMemory("dense_shapes")                     \
                              .TypeConstraint<T>("T")                         \
                              .TypeConstraint<Id>("Tid"),                     \
                          GroupedLookUpOp);                                   \
  REGISTER_GUARDED_KERNEL(Name("WorkbenchResourceGroupedLookUp")              \
                              .Device(tensorflow::DEVICE_GPU)                 \
                              .HostMemory("tables")                           \
                              .HostMemory("dense_shapes")                     \
                              .TypeConstraint<T>("T")                         \
                              .TypeConstraint<Id>("Tid"),                     \
                          GroupedLookUpOp);                                   \
  REGISTER_GUARDED_KERNEL(Name("WorkbenchGroupedLookUpGrad")                  \
                              .Device(tensorflow::DEVICE_GPU)                 \
                              .HostMemory("dense_shapes")                     \
                              .TypeConstraint<T>("T")                         \
                              .TypeConstraint<Id>("Tid"),                     \
                          GroupedLookUpGradOp);                               \
  REGISTER_GUARDED_KERNEL(Name("WorkbenchGroupedLookUpWeightGrad")            \
                              .Device(tensorflow::DEVICE_GPU)                 \
                              .HostMemory("dense_shapes")                     \
                              .TypeConstraint<T>("T")                         \
                              .TypeConstraint<Id>("Tid"),                     \
                          GroupedWeightGradOp);                               \
  REGISTER_GUARDED_KERNEL(Name("WorkbenchResourceGroupedLookUpWeightGrad")    \
                              .Device(tensorflow::DEVICE_GPU)                 \
                              .HostMemory("tables")                           \
                              .HostMemory("dense_shapes")                     \
                              .TypeConstraint<T>("T")                         \
                              .TypeConstraint<Id>("Tid"),                     \
                          GroupedWeightGradOp)
#define WORKBENCH_REGISTER_BOTH(T) \
  WORKBENCH_REGISTER(T, int32_t);  \
  WORKBENCH_REGISTER(T, int64_t)
WORKBENCH_REGISTER_BOTH(float);
WORKBENCH_REGISTER_BOTH(Eigen::half);
WORKBENCH_REGISTER_BOTH(tensorflow::bfloat16);
#undef WORKBENCH_REGISTER_BOTH
#undef WORKBENCH_REGISTER

}  // namespace
}  // namespace workbench::cuda
