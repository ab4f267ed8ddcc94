// Kernels after the lookup: combine the vectors of each row, and their gradients.

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "combine/combine.h"
#include "combine/combine_calls.h"
#include "combine/row_ranges.h"
#include "registration/guarded_kernel.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace workbench {
namespace {

using tensorflow::OpInputList;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// The attributes, and what both directions read.
template <typename T, bool kUnique>
class CombiningKernel : public OpKernel {
 public:
  explicit CombiningKernel(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, CombinerOf(c, &combiner_));
    OP_REQUIRES_OK(c, c->GetAttr("num_partitions", &partitions_));
    OP_REQUIRES_OK(c, c->GetAttr("use_weights", &use_weights_));
    OP_REQUIRES_OK(c, c->GetAttr("max_norm", &max_norm_));
  }

 protected:
  // What a computation works on; owns the list of shards.
  struct Work {
    LookedUp<T> in;
    std::vector<const T*> shards;
    int64_t ids = 0;
    int64_t unique = 0;
  };

  // Reads shape and order of the ids; `vectors` is how many each shard has.
  absl::Status Read(OpKernelContext* c, const std::vector<int64_t>& vectors, Work* work) const {
    const Tensor *splits, *permutation, *weights, *index = nullptr;
    TF_RETURN_IF_ERROR(c->input("row_splits", &splits));
    TF_RETURN_IF_ERROR(c->input("permutation", &permutation));
    TF_RETURN_IF_ERROR(c->input("weights", &weights));
    if (kUnique) TF_RETURN_IF_ERROR(c->input("unique_index", &index));
    if (splits->dims() != 1 || splits->NumElements() < 1) {
      return WrongShape("row_splits", *splits, "a vector of at least one element");
    }
    for (int64_t each : vectors) work->unique += each;
    work->ids = work->unique;
    if (index != nullptr) {
      if (index->dims() != 1) return WrongShape("unique_index", *index, "a vector");
      work->ids = index->NumElements();
      // Of a batch without ids, whose vectors others ask for: null would say that ids are not unique.
      static constexpr int32_t kNone = 0;
      work->in.index = work->ids == 0 ? &kNone : index->flat<int32_t>().data();
    }
    const bool in_order = partitions_ == 1 && permutation->NumElements() == 0;
    if (!in_order) {
      if (permutation->dims() != 2 || permutation->dim_size(0) != work->unique ||
          permutation->dim_size(1) != 2) {
        return WrongShape("permutation", *permutation, absl::StrCat("[", work->unique, ", 2]"));
      }
      work->in.permutation = permutation->flat<int32_t>().data();
    }
    if (use_weights_) {
      if (weights->dims() != 1 || weights->NumElements() != work->ids) {
        return WrongShape("weights", *weights, absl::StrCat("[", work->ids, "]"));
      }
      work->in.weights = weights->flat<float>().data();
    }
    work->in.rows = splits->NumElements() - 1;
    work->in.splits = splits->flat<int32_t>().data();
    work->in.combiner = combiner_;
    work->in.max_norm = max_norm_;
    const Sizes sizes{work->ids, work->unique, partitions_, vectors.data()};
    const std::string misfit = Misfit(sizes, work->in.rows, work->in.splits, work->in.index,
                                      work->in.permutation);
    return misfit.empty() ? absl::OkStatus() : absl::InvalidArgumentError(misfit);
  }

  // Reads the shards' vectors; sets `vectors` where it is not null.
  absl::Status ReadShards(const OpInputList& shards, Work* work,
                          std::vector<int64_t>* vectors) const {
    for (int p = 0; p < shards.size(); ++p) {
      if (shards[p].dims() != 2 || shards[p].dim_size(1) != shards[0].dim_size(1)) {
        return WrongShape("shards", shards[p], "[n, dim], with one dim for all shards");
      }
      work->shards.push_back(shards[p].template flat<T>().data());
      if (vectors != nullptr) vectors->push_back(shards[p].dim_size(0));
    }
    work->in.shards = work->shards.data();
    work->in.dim = shards[0].dim_size(1);
    return absl::OkStatus();
  }

  int partitions_ = 1;
  bool use_weights_ = false;

 private:
  Combiner combiner_ = Combiner::kSum;
  float max_norm_ = -1;
};

template <typename T, bool kUnique>
class PostLookUpOp : public CombiningKernel<T, kUnique> {
 public:
  using CombiningKernel<T, kUnique>::CombiningKernel;

  void Compute(OpKernelContext* c) override {
    OpInputList shards;
    OP_REQUIRES_OK(c, c->input_list("shards", &shards));
    typename CombiningKernel<T, kUnique>::Work work;
    std::vector<int64_t> vectors;
    OP_REQUIRES_OK(c, this->ReadShards(shards, &work, &vectors));
    OP_REQUIRES_OK(c, this->Read(c, vectors, &work));
    TensorShape shape;
    OP_REQUIRES_OK(c, CombinedShape(c, work.in.rows, work.in.dim, &shape));
    Tensor* out = nullptr;
    OP_REQUIRES_OK(c, c->allocate_output(0, shape, &out));
    T* to = out->flat<T>().data();
    ByRowRanges(c, work.in.rows, work.ids, work.in.dim * sizeof(T),
                [&](int64_t begin, int64_t end) { Combine(work.in, begin, end, to); });
  }
};

template <typename T, bool kUnique>
class PostLookUpGradOp : public CombiningKernel<T, kUnique> {
 public:
  using Base = CombiningKernel<T, kUnique>;
  using Base::Base;

  void Compute(OpKernelContext* c) override {
    OpInputList values, shards;
    OP_REQUIRES_OK(c, c->input_list("partitioned_values", &values));
    OP_REQUIRES_OK(c, c->input_list("shards", &shards));
    std::vector<int64_t> vectors;
    for (const Tensor& each : values) vectors.push_back(each.NumElements());
    typename Base::Work work;
    OP_REQUIRES_OK(c, this->Read(c, vectors, &work));
    OP_REQUIRES_OK(c, EachOnce(work, vectors));
    const Tensor& gradient = c->input(0);
    OP_REQUIRES_OK(c, FitsRows(gradient, work.in.rows));
    const int64_t dim = gradient.dim_size(gradient.dims() - 1);
    OP_REQUIRES_OK(c, ReadVectors(shards, vectors, dim, &work));
    work.in.dim = dim;
    std::vector<T*> out;
    for (int p = 0; p < this->partitions_; ++p) {
      Tensor* each = nullptr;
      OP_REQUIRES_OK(c, c->allocate_output(p, TensorShape({vectors[p], dim}), &each));
      out.push_back(each->template flat<T>().data());
    }
    const T* from = gradient.flat<T>().data();
    OP_REQUIRES_OK(c, Vectors(c, work, from, out));
    OP_REQUIRES_OK(c, Weights(c, work, from));
  }

 private:
  absl::Status EachOnce(const typename Base::Work& work,
                        const std::vector<int64_t>& vectors) const {
    if (work.in.permutation == nullptr) return absl::OkStatus();
    const Sizes sizes{work.ids, work.unique, this->partitions_, vectors.data()};
    const std::string shared = SharedVector(sizes, work.in.permutation);
    return shared.empty() ? absl::OkStatus() : absl::InvalidArgumentError(shared);
  }

  absl::Status ReadVectors(const OpInputList& shards, const std::vector<int64_t>& vectors,
                           int64_t dim, typename Base::Work* work) const {
    if (shards.size() == 0) {
      if (work->in.max_norm < 0) return absl::OkStatus();
      return absl::InvalidArgumentError("max_norm is set; expected 'shards' to be given");
    }
    std::vector<int64_t> found;
    if (shards.size() != this->partitions_) {
      return absl::InvalidArgumentError(absl::StrCat(shards.size(), " 'shards'; expected none or ",
                                                     this->partitions_));
    }
    TF_RETURN_IF_ERROR(this->ReadShards(shards, work, &found));
    if (found == vectors && work->in.dim == dim) return absl::OkStatus();
    return WrongShape("shards", shards[0], "a vector for each id, as wide as the gradient");
  }

  absl::Status Vectors(OpKernelContext* c, const typename Base::Work& work, const T* from,
                       const std::vector<T*>& out) const {
    const LookedUp<T>& in = work.in;
    if (!kUnique) {
      ByRowRanges(c, in.rows, work.ids, in.dim * sizeof(T), [&](int64_t begin, int64_t end) {
        SpreadGradient(in, from, begin, end, out.data());
      });
      return absl::OkStatus();
    }
    Tensor scratch;
    float* sums = nullptr;
    if (std::is_same_v<T, float> && out.size() == 1) {
      sums = reinterpret_cast<float*>(out[0]);
    } else {
      TF_RETURN_IF_ERROR(c->allocate_temp(tensorflow::DT_FLOAT,
                                          TensorShape({work.unique, in.dim}), &scratch));
      sums = scratch.flat<float>().data();
    }
    ByUniqueRanges(c, work.ids, work.unique, in.dim, [&](int64_t begin, int64_t end) {
      GatherGradient(in, from, begin, end, sums, out.data());
    });
    return absl::OkStatus();
  }

  absl::Status Weights(OpKernelContext* c, const typename Base::Work& work, const T* from) const {
    const bool wanted = this->use_weights_ && work.in.shards != nullptr;
    Tensor* out = nullptr;
    TF_RETURN_IF_ERROR(c->allocate_output(this->partitions_,
                                          TensorShape({wanted ? work.ids : 0}), &out));
    if (!wanted) return absl::OkStatus();
    float* to = out->flat<float>().data();
    ByRowRanges(c, work.in.rows, work.ids, work.in.dim * sizeof(T),
                [&](int64_t begin, int64_t end) { WeightGradient(work.in, from, begin, end, to); });
    return absl::OkStatus();
  }
};

#define WORKBENCH_REGISTER(T)                                                                    \
  REGISTER_GUARDED_KERNEL(                                                                       \
      Name("WorkbenchPostLookUp").Device(tensorflow::DEVICE_CPU).TypeConstraint<T>("T"),         \
      PostLookUpOp<T, false>);                                                                   \
  REGISTER_GUARDED_KERNEL(                                                                       \
      Name("WorkbenchPostLookUpV2").Device(tensorflow::DEVICE_CPU).TypeConstraint<T>("T"),       \
      PostLookUpOp<T, true>);                                                                    \
  REGISTER_GUARDED_KERNEL(                                                                       \
      Name("WorkbenchPostLookUpGrad").Device(tensorflow::DEVICE_CPU).TypeConstraint<T>("T"),     \
      PostLookUpGradOp<T, false>);                                                               \
  REGISTER_GUARDED_KERNEL(                                                                       \
      Name("WorkbenchPostLookUpV2Grad").Device(tensorflow::DEVICE_CPU).TypeConstraint<T>("T"),   \
      PostLookUpGradOp<T, true>)
WORKBENCH_REGISTER(float);
WORKBENCH_REGISTER(Eigen::half);
WORKBENCH_REGISTER(tensorflow::bfloat16);
#undef WORKBENCH_REGISTER

}  // namespace
}  // namespace workbench
