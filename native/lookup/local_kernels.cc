// Kernels of lookups that read the table itself, see local_ops.cc.

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "combine/combine.h"
#include "combine/combine_calls.h"
#include "combine/row_ranges.h"
#include "lookup/unique/different_ids.h"
#include "registration/guarded_kernel.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace workbench {
namespace {

using tensorflow::DT_INT32;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// What both directions read of the ids.
template <typename T>
class LocalKernel : public OpKernel {
 public:
  explicit LocalKernel(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, c->GetAttr("use_index", &use_index_));
    OP_REQUIRES_OK(c, CombinerOf(c, &combiner_));
  }

 protected:
  struct Ids {
    LookedUp<T> in;
    const int64_t* values = nullptr;
    int64_t count = 0;
    int64_t unique = 0;
  };

  absl::Status Read(OpKernelContext* c, Ids* ids) const {
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
    ids->values = values->flat<int64_t>().data();
    ids->unique = values->NumElements();
    ids->count = use_index_ ? index->NumElements() : ids->unique;
    ids->in.index = use_index_ ? index->flat<int32_t>().data() : nullptr;
    ids->in.rows = splits->NumElements() - 1;
    ids->in.splits = splits->flat<int32_t>().data();
    ids->in.combiner = combiner_;
    const Sizes sizes{ids->count, ids->unique, 1, &ids->unique};
    const std::string misfit =
        Misfit(sizes, ids->in.rows, ids->in.splits, ids->in.index, nullptr);
    return misfit.empty() ? absl::OkStatus() : absl::InvalidArgumentError(misfit);
  }

 private:
  bool use_index_ = false;
  Combiner combiner_ = Combiner::kSum;
};

// Combines rows of a table that is an input, or a variable behind a handle.
template <typename T, bool kResource>
class LocalLookUpOp : public LocalKernel<T> {
 public:
  using LocalKernel<T>::LocalKernel;

  void Compute(OpKernelContext* c) override {
    if constexpr (kResource) {
      tensorflow::core::RefCountPtr<tensorflow::Var> variable;
      OP_REQUIRES_OK(c, tensorflow::LookupResource(c, tensorflow::HandleFromInput(c, 0),
                                                   &variable));
      // Held while the rows are read: an update of single rows waits, a copy is never needed.
      tensorflow::tf_shared_lock lock(*variable->mu());
      OP_REQUIRES(c, variable->is_initialized && variable->tensor()->dtype() == Type(),
                  absl::FailedPreconditionError(absl::StrCat(
                      "the table is not initialized, or not of type ",
                      tensorflow::DataTypeString(Type()), "; run its initializer first")));
      OP_REQUIRES_OK(c, Look(c, *variable->tensor()));
    } else {
      OP_REQUIRES_OK(c, Look(c, c->input(0)));
    }
  }

 private:
  static tensorflow::DataType Type() { return tensorflow::DataTypeToEnum<T>::v(); }

  absl::Status Look(OpKernelContext* c, const Tensor& table) const {
    if (table.dims() != 2) {
      return absl::InvalidArgumentError(absl::StrCat("the table has shape ",
                                                     table.shape().DebugString(),
                                                     "; expected [rows, dim]"));
    }
    typename LocalKernel<T>::Ids ids;
    TF_RETURN_IF_ERROR(this->Read(c, &ids));
    const int64_t rows = table.dim_size(0);
    uint64_t beyond = 0;
    for (int64_t i = 0; i < ids.unique; ++i) {
      beyond |= static_cast<uint64_t>(static_cast<uint64_t>(ids.values[i]) >=
                                      static_cast<uint64_t>(rows));
    }
    if (beyond != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("an id is not in [0, ", rows, "), the rows that the table has by now"));
    }
    const T* base = table.flat<T>().data();
    ids.in.shards = &base;
    ids.in.table_row = ids.values;
    ids.in.dim = table.dim_size(1);
    TensorShape shape;
    TF_RETURN_IF_ERROR(CombinedShape(c, ids.in.rows, ids.in.dim, &shape));
    Tensor* out = nullptr;
    TF_RETURN_IF_ERROR(c->allocate_output(0, shape, &out));
    T* to = out->flat<T>().data();
    ByRowRanges(c, ids.in.rows, ids.count, ids.in.dim * sizeof(T),
                [&](int64_t begin, int64_t end) { Combine(ids.in, begin, end, to); });
    return absl::OkStatus();
  }
};

template <typename T>
class LocalLookUpGradOp : public LocalKernel<T> {
 public:
  using LocalKernel<T>::LocalKernel;

  void Compute(OpKernelContext* c) override {
    typename LocalKernel<T>::Ids ids;
    OP_REQUIRES_OK(c, this->Read(c, &ids));
    const Tensor& gradient = c->input(0);
    OP_REQUIRES_OK(c, FitsRows(gradient, ids.in.rows));
    ids.in.dim = gradient.dim_size(gradient.dims() - 1);
    Tensor different = c->input(1), index;
    if (ids.in.index == nullptr) {
      OP_REQUIRES_OK(c, Unique(c, &ids, &different, &index));
    }
    c->set_output(0, different);
    Tensor* out = nullptr;
    OP_REQUIRES_OK(c, c->allocate_output(1, TensorShape({ids.unique, ids.in.dim}), &out));
    OP_REQUIRES_OK(c, Sum(c, ids, gradient.flat<T>().data(), out->flat<T>().data()));
  }

 private:
  // Makes ids unique: `different`, ascending, and `index` of each id among them.
  static absl::Status Unique(OpKernelContext* c, typename LocalKernel<T>::Ids* ids,
                             Tensor* different, Tensor* index) {
    Tensor counts;
    TF_RETURN_IF_ERROR(c->allocate_temp(DT_INT32, TensorShape({ids->count}), index));
    int32_t* at = index->flat<int32_t>().data();
    TF_RETURN_IF_ERROR(FindDifferent(c, ids->values, ids->count, at, different, &counts));
    ids->unique = different->NumElements();
    ids->in.index = at;
    return absl::OkStatus();
  }

  static absl::Status Sum(OpKernelContext* c, const typename LocalKernel<T>::Ids& ids,
                          const T* from, T* to) {
    Tensor scratch;
    float* sums = nullptr;
    if constexpr (std::is_same_v<T, float>) {
      sums = to;
    } else {
      TF_RETURN_IF_ERROR(c->allocate_temp(tensorflow::DT_FLOAT,
                                          TensorShape({ids.unique, ids.in.dim}), &scratch));
      sums = scratch.flat<float>().data();
    }
    // No id, and a null index that GatherGradient would take for ids that are unique.
    if (ids.count == 0) return absl::OkStatus();
    ByUniqueRanges(c, ids.count, ids.unique, ids.in.dim, [&](int64_t begin, int64_t end) {
      GatherGradient(ids.in, from, begin, end, sums, &to);
    });
    return absl::OkStatus();
  }
};

#define WORKBENCH_REGISTER(T)                                                                   \
  REGISTER_GUARDED_KERNEL(                                                                      \
      Name("WorkbenchLocalLookUp").Device(tensorflow::DEVICE_CPU).TypeConstraint<T>("T"),       \
      LocalLookUpOp<T, false>);                                                                 \
  REGISTER_GUARDED_KERNEL(Name("WorkbenchResourceLocalLookUp")                                  \
                              .Device(tensorflow::DEVICE_CPU)                                   \
                              .TypeConstraint<T>("T"),                                          \
                          LocalLookUpOp<T, true>);                                              \
  REGISTER_GUARDED_KERNEL(                                                                      \
      Name("WorkbenchLocalLookUpGrad").Device(tensorflow::DEVICE_CPU).TypeConstraint<T>("T"),   \
      LocalLookUpGradOp<T>)
WORKBENCH_REGISTER(float);
WORKBENCH_REGISTER(Eigen::half);
WORKBENCH_REGISTER(tensorflow::bfloat16);
#undef WORKBENCH_REGISTER

}  // namespace
}  // namespace workbench
