// Kernels for a GPU of lookups that read the table itself, see lookup/local_ops.cc. V1 and V2 run up
// to here on the CPU, where the ids are.

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "combine/combine_calls.h"
#include "cuda/calls.h"
#include "cuda/ops/device_context.h"
#include "cuda/ops/device_tables.h"
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
using tensorflow::Tensor;
using tensorflow::TensorShape;

// What both directions read of the ids.
struct LocalIds {
  bool use_index = false;
  Combiner combiner = Combiner::kSum;
  Scalar type = Scalar::kFloat;

  absl::Status Read(OpKernelConstruction* c) {
    tensorflow::DataType of_tables;
    TF_RETURN_IF_ERROR(c->GetAttr("T", &of_tables));
    type = ScalarOf(of_tables);
    TF_RETURN_IF_ERROR(c->GetAttr("use_index", &use_index));
    return CombinerOf(c, &combiner);
  }

  // One feature, without a table and vectors; `values` where an index is to lead to rows.
  absl::Status Read(OpKernelContext* c, bool through_values, FeatureCall* feature) const {
    const Tensor *values, *index, *splits;
    TF_RETURN_IF_ERROR(c->input("values", &values));
    TF_RETURN_IF_ERROR(c->input("unique_index", &index));
    TF_RETURN_IF_ERROR(c->input("row_splits", &splits));
    if (values->dims() != 1 || index->dims() != 1 || splits->dims() != 1 ||
        splits->NumElements() < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "values ", values->shape().DebugString(), ", unique_index ",
          index->shape().DebugString(), ", row_splits ", splits->shape().DebugString(),
          "; expected vectors, the last of at least one element"));
    }
    feature->ids = use_index ? index->data() : values->data();
    feature->count = use_index ? index->NumElements() : values->NumElements();
    feature->unique = values->NumElements();
    if (use_index && through_values) feature->values = values->flat<int64_t>().data();
    feature->rows = splits->data();
    feature->kind = RowsKind::kSplits32;
    feature->examples = splits->NumElements() - 1;
    feature->combiner = combiner;
    if (feature->count < std::numeric_limits<int32_t>::max()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(feature->count, " ids; expected fewer than int32 counts"));
  }
};

// A call of one feature, which lives as long as this.
struct LocalCall {
  FeatureCall feature;
  TableCall table;
  GroupCall group;

  void Finish(const LocalIds& ids, uint64_t* complaint) {
    group.type = ids.type;
    group.wide_ids = ids.use_index ? 0 : 1;
    group.feature_count = group.table_count = 1;
    group.features = &feature;
    group.tables = &table;
    group.complaint = complaint;
  }
};

class LocalLookUpOp : public OpKernel {
 public:
  explicit LocalLookUpOp(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, ids_.Read(c));
    OP_REQUIRES_OK(c, c->GetAttr("T", &type_));
  }

  void Compute(OpKernelContext* c) override {
    OP_REQUIRES_OK(c, complaints_.Take({}));
    DeviceTables tables;
    OP_REQUIRES_OK(c, tables.HoldToRead(c, 1, type_));
    OP_REQUIRES_OK(c, tables.CheckTable(0, -1));
    LocalCall call;
    OP_REQUIRES_OK(c, ids_.Read(c, /*through_values=*/true, &call.feature));
    call.table.values = tables[0].data();
    call.table.rows = tables[0].dim_size(0);
    call.table.dim = call.feature.stride = tables[0].dim_size(1);
    TensorShape shape;
    OP_REQUIRES_OK(c, CombinedShape(c, call.feature.examples, call.table.dim, &shape));
    Tensor* out = nullptr;
    OP_REQUIRES_OK(c, c->allocate_output(0, shape, &out));
    call.feature.vectors = out->data();
    call.Finish(ids_, complaints_.word());
    OP_REQUIRES_OK(c, CudaStatus(workbench_cuda_look_up(StreamOf(c), &call.group), "a lookup"));
  }

 private:
  LocalIds ids_;
  tensorflow::DataType type_;
  Complaints complaints_;
};

// With an index the rows are given. Without, the GPU finds how many there are: their number comes to
// the host meanwhile, and no thread waits for it.
class LocalLookUpGradOp : public AsyncOpKernel {
 public:
  explicit LocalLookUpGradOp(OpKernelConstruction* c) : AsyncOpKernel(c) {
    OP_REQUIRES_OK(c, ids_.Read(c));
  }

  void ComputeAsync(OpKernelContext* c, DoneCallback done) override {
    OP_REQUIRES_OK_ASYNC(c, complaints_.Take({}), done);
    auto work = std::make_shared<Work>();
    OP_REQUIRES_OK_ASYNC(c, FindTouched(c, work.get()), done);
    if (ids_.use_index) {
      c->set_output(0, c->input(1));
      OP_REQUIRES_OK_ASYNC(c, Sum(c, *work, work->call.table.rows, nullptr), done);
      done();
      return;
    }
    WhenDone(c, [c, done = std::move(done), work] {
      const int64_t count = work->ends.flat<int32_t>()(1);
      Tensor* rows = nullptr;
      OP_REQUIRES_OK_ASYNC(c, c->allocate_output(0, TensorShape({count}), &rows), done);
      OP_REQUIRES_OK_ASYNC(c, Sum(c, *work, count, rows->flat<int64_t>().data()), done);
      done();
    });
  }

 private:
  struct Work {
    LocalCall call;
    Touched touched;
    Tensor memory;
    Tensor ends;  // 0, and the number of rows; on the host
  };

  absl::Status FindTouched(OpKernelContext* c, Work* work) {
    LocalCall& call = work->call;
    TF_RETURN_IF_ERROR(ids_.Read(c, /*through_values=*/false, &call.feature));
    const Tensor& gradient = c->input(0);
    TF_RETURN_IF_ERROR(FitsRows(gradient, call.feature.examples));
    call.feature.vectors = gradient.data();
    call.table.dim = call.feature.stride = gradient.dim_size(gradient.dims() - 1);
    // Which rows there are the lookup has checked.
    call.table.rows = ids_.use_index ? call.feature.unique : std::numeric_limits<int64_t>::max();
    call.Finish(ids_, complaints_.word());
    const Numbering numbering = ids_.use_index ? Numbering::kEvery : Numbering::kTouched;
    TF_RETURN_IF_ERROR(
        AllocateBytes(c, workbench_cuda_workspace(&call.group, numbering), &work->memory));
    TF_RETURN_IF_ERROR(CudaStatus(workbench_cuda_ask(StreamOf(c), &call.group, numbering,
                                                     work->memory.data(), &work->touched),
                                  "ordering ids"));
    if (ids_.use_index) return absl::OkStatus();
    TF_RETURN_IF_ERROR(AllocateOnHost(c, 2, &work->ends));
    return CudaStatus(workbench_cuda_copy(StreamOf(c), work->touched.table_firsts,
                                          2 * sizeof(int32_t), work->ends.data()),
                      "counting rows");
  }

  static absl::Status Sum(OpKernelContext* c, const Work& work, int64_t count, int64_t* rows) {
    Tensor* sums = nullptr;
    TF_RETURN_IF_ERROR(
        c->allocate_output(1, TensorShape({count, work.call.table.dim}), &sums));
    return CudaStatus(workbench_cuda_sum(StreamOf(c), &work.call.group, &work.touched, 0, 0, count,
                                         rows, sums->data()),
                      "a gradient");
  }

  LocalIds ids_;
  Complaints complaints_;
};

#define WORKBENCH_REGISTER(T)                                                 \
  REGISTER_GUARDED_KERNEL(Name("WorkbenchLocalLookUp")                        \
                              .Device(tensorflow::DEVICE_GPU)                 \
                              .HostMemory("dense_shape")                      \
                              .TypeConstraint<T>("T"),                        \
                          LocalLookUpOp);                                     \
  REGISTER_GUARDED_KERNEL(Name("WorkbenchResourceLocalLookUp")                \
                              .Device(tensorflow::DEVICE_GPU)                 \
                              .HostMemory("table")                            \
                              .HostMemory("dense_shape")                      \
                              .TypeConstraint<T>("T"),                        \
                          LocalLookUpOp);                                     \
  REGISTER_GUARDED_KERNEL(Name("WorkbenchLocalLookUpGrad")                    \
                              .Device(tensorflow::DEVICE_GPU)                 \
                              .TypeConstraint<T>("T"),                        \
                          LocalLookUpGradOp)
WORKBENCH_REGISTER(float);
WORKBENCH_REGISTER(Eigen::half);
WORKBENCH_REGISTER(tensorflow::bfloat16);
#undef WORKBENCH_REGISTER

}  // namespace
}  // namespace workbench::cuda
