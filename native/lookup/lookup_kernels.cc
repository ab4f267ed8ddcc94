// Kernels before the lookup: which ids stay, each once, and which shard has them.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lookup/row_ids.h"
#include "lookup/shards.h"
#include "lookup/unique/different_ids.h"
#include "registration/guarded_kernel.h"
#include "tensorflow/core/framework/op_kernel.h"
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
using tensorflow::TensorShapeUtils;

absl::Status FeatureError(const std::string& feature, const std::string& what) {
  return absl::InvalidArgumentError(
      feature.empty() ? what : absl::StrCat("feature '", feature, "': ", what));
}

// Says that a table has no such id. `row` below 0 is left out.
absl::Status OutOfRange(const std::string& feature, int64_t id, int64_t row, int64_t table_rows) {
  const std::string where = row < 0 ? "" : absl::StrCat("row ", row, ": ");
  return FeatureError(feature, absl::StrCat(where, "id ", id, " is not in [0, ", table_rows,
                                     "), the rows of the embedding table"));
}

// The attributes and inputs that both ops which prune and fill have.
template <typename Id>
class SparseIdsKernel : public OpKernel {
 public:
  explicit SparseIdsKernel(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, c->GetAttr("use_weights", &use_weights_));
    OP_REQUIRES_OK(c, c->GetAttr("prune_invalid_id", &rules_.prune_ids));
    OP_REQUIRES_OK(c, c->GetAttr("prune_invalid_weight", &rules_.prune_weights));
    OP_REQUIRES_OK(c, c->GetAttr("fill_empty_row", &rules_.fill_empty_rows));
    OP_REQUIRES_OK(c, c->GetAttr("default_id", &rules_.fill_id));
    OP_REQUIRES_OK(c, c->GetAttr("feature", &feature_));
    OP_REQUIRES(c, static_cast<Id>(rules_.fill_id) == rules_.fill_id,
                FeatureError(feature_, absl::StrCat("default_id is ", rules_.fill_id,
                                             ", beyond what ids of this type count")));
  }

 protected:
  struct Kept {
    int64_t rows = 0;
    Tensor* splits = nullptr;
    Tensor values;
    int64_t count = 0;
  };

  // Writes row_splits, kept_weights and sources from output `first` on; `values` is left to the op.
  absl::Status Keep(OpKernelContext* c, int first, Kept* kept) const {
    SparseIds<Id> in;
    TF_RETURN_IF_ERROR(Read(c, &in));
    kept->rows = RowCount(in.dense_shape, in.rank);
    if (kept->rows < 0) {
      return FeatureError(feature_, absl::StrCat("dense_shape is ", c->input(2).SummarizeValue(8),
                                          "; expected no negative size, and rows that int32 counts"));
    }
    TF_RETURN_IF_ERROR(
        c->allocate_output(first, TensorShape({kept->rows + 1}), &kept->splits));
    int32_t* splits = kept->splits->template flat<int32_t>().data();
    const std::string problem = SplitRows(in, rules_, kept->rows, splits);
    if (!problem.empty()) return FeatureError(feature_, problem);
    kept->count = splits[kept->rows];
    Tensor cursors, *weights = nullptr, *sources = nullptr;
    const TensorShape ids({kept->count}), weighted({use_weights_ ? kept->count : 0});
    TF_RETURN_IF_ERROR(c->allocate_temp(DT_INT32, TensorShape({kept->rows}), &cursors));
    TF_RETURN_IF_ERROR(c->allocate_temp(tensorflow::DataTypeToEnum<Id>::v(), ids, &kept->values));
    TF_RETURN_IF_ERROR(c->allocate_output(first + 1, weighted, &weights));
    TF_RETURN_IF_ERROR(c->allocate_output(first + 2, weighted, &sources));
    KeepIds(in, rules_, kept->rows, splits, cursors.flat<int32_t>().data(),
            kept->values.template flat<Id>().data(),
            use_weights_ ? weights->flat<float>().data() : nullptr,
            use_weights_ ? sources->flat<int32_t>().data() : nullptr);
    return absl::OkStatus();
  }

  // The error of a kept id that no shard has.
  absl::Status NotFound(const Kept& kept, int64_t position, int64_t table_rows) const {
    const int32_t* splits = kept.splits->template flat<int32_t>().data();
    return OutOfRange(feature_, kept.values.template flat<Id>()(position),
                      RowOf(splits, kept.rows, position), table_rows);
  }

 private:
  absl::Status Read(OpKernelContext* c, SparseIds<Id>* in) const {
    const Tensor &ids = c->input(0), &indices = c->input(1), &dense_shape = c->input(2),
                 &weights = c->input(3);
    if (!TensorShapeUtils::IsVector(ids.shape()) ||
        !TensorShapeUtils::IsMatrix(indices.shape()) ||
        !TensorShapeUtils::IsVector(dense_shape.shape()) ||
        indices.dim_size(0) != ids.dim_size(0) ||
        indices.dim_size(1) != dense_shape.dim_size(0) || dense_shape.dim_size(0) < 2) {
      return FeatureError(feature_, absl::StrCat("ids ", ids.shape().DebugString(), ", indices ",
                                          indices.shape().DebugString(), ", dense_shape ",
                                          dense_shape.shape().DebugString(),
                                          "; expected [n], [n, rank] and [rank], rank at least 2"));
    }
    if (!TensorShapeUtils::IsVector(weights.shape()) ||
        (use_weights_ && weights.dim_size(0) != ids.dim_size(0))) {
      return FeatureError(feature_, absl::StrCat("weights ", weights.shape().DebugString(),
                                          "; expected one for each of ", ids.dim_size(0), " ids"));
    }
    in->ids = ids.flat<Id>().data();
    in->indices = indices.flat<int64_t>().data();
    in->weights = use_weights_ ? weights.flat<float>().data() : nullptr;
    in->count = ids.dim_size(0);
    in->dense_shape = dense_shape.flat<int64_t>().data();
    in->rank = static_cast<int>(dense_shape.dim_size(0));
    return absl::OkStatus();
  }

  KeepRules rules_;
  bool use_weights_;

 protected:
  std::string feature_;
};

template <typename Id>
class PruneInvalidAndFillEmptyRowsOp : public SparseIdsKernel<Id> {
 public:
  using SparseIdsKernel<Id>::SparseIdsKernel;

  void Compute(OpKernelContext* c) override {
    OP_REQUIRES(c, TensorShapeUtils::IsScalar(c->input(4).shape()),
                FeatureError(this->feature_, absl::StrCat("table_rows ", c->input(4).shape().DebugString(),
                                                   "; expected a scalar")));
    const int64_t table_rows = c->input(4).scalar<int64_t>()();
    typename SparseIdsKernel<Id>::Kept kept;
    OP_REQUIRES_OK(c, this->Keep(c, 1, &kept));
    const auto values = kept.values.template flat<Id>();
    for (int64_t i = 0; table_rows >= 0 && i < kept.count; ++i) {
      OP_REQUIRES(c, values(i) >= 0 && values(i) < table_rows,
                  this->NotFound(kept, i, table_rows));
    }
    c->set_output(0, kept.values);
  }
};

absl::Status StrategyOf(OpKernelConstruction* c, PartitionStrategy* strategy) {
  std::string name;
  TF_RETURN_IF_ERROR(c->GetAttr("partition_strategy", &name));
  *strategy = name == "div"   ? PartitionStrategy::kDiv
              : name == "mod" ? PartitionStrategy::kMod
                              : PartitionStrategy::kModKey;
  return absl::OkStatus();
}

absl::Status ShardsOf(const Tensor& table_rows, int count, PartitionStrategy strategy,
                      std::vector<int64_t>* rows) {
  if (!TensorShapeUtils::IsVector(table_rows.shape()) || table_rows.dim_size(0) != count) {
    return absl::InvalidArgumentError(absl::StrCat("table_rows ",
                                                   table_rows.shape().DebugString(),
                                                   "; expected one for each of ", count,
                                                   " partitions"));
  }
  const auto given = table_rows.flat<int64_t>();
  rows->assign(given.data(), given.data() + count);
  int64_t total = 0;
  for (int64_t each : *rows) {
    // A table of unknown size is read by keys, and only keys say which shard has them.
    if (each < -1 || (each == -1 && count > 1 && strategy != PartitionStrategy::kModKey)) {
      return absl::InvalidArgumentError(
          absl::StrCat("table_rows has ", each, "; expected the rows of each partition"));
    }
    if (__builtin_add_overflow(total, std::max<int64_t>(0, each), &total)) {
      return absl::InvalidArgumentError(
          absl::StrCat("table_rows are ", table_rows.SummarizeValue(8),
                       "; expected no more rows together than int64 counts"));
    }
  }
  return absl::OkStatus();
}

// Writes the lists of all shards from output 0 on, in `order`, and the permutation after them.
//
// Sets `missing` to the position of an id that no shard has, else to -1.
template <typename Id>
absl::Status Partition(OpKernelContext* c, const Shards& shards, const Tensor& values,
                       const int32_t* order, int64_t* missing) {
  const int64_t count = values.NumElements();
  const Id* ids = values.flat<Id>().data();
  Tensor* permutation = nullptr;
  TF_RETURN_IF_ERROR(c->allocate_output(shards.count(), TensorShape({count, 2}), &permutation));
  int32_t* places = permutation->flat<int32_t>().data();
  std::vector<int64_t> counts(shards.count());
  *missing = FindShards(shards, ids, count, order, places, counts.data());
  if (*missing >= 0) return absl::OkStatus();
  std::vector<Id*> lists;
  for (int p = 0; p < shards.count(); ++p) {
    Tensor* list = nullptr;
    TF_RETURN_IF_ERROR(c->allocate_output(p, TensorShape({counts[p]}), &list));
    lists.push_back(list->flat<Id>().data());
  }
  ListRows(shards, ids, count, places, lists.data());
  return absl::OkStatus();
}

template <typename Id>
class PreLookUpOp : public SparseIdsKernel<Id> {
 public:
  explicit PreLookUpOp(OpKernelConstruction* c) : SparseIdsKernel<Id>(c) {
    OP_REQUIRES_OK(c, c->GetAttr("num_partitions", &count_));
    OP_REQUIRES_OK(c, c->GetAttr("in_table_order", &in_table_order_));
    OP_REQUIRES_OK(c, StrategyOf(c, &strategy_));
  }

  void Compute(OpKernelContext* c) override {
    std::vector<int64_t> rows;
    OP_REQUIRES_OK(c, ShardsOf(c->input(4), count_, strategy_, &rows));
    typename SparseIdsKernel<Id>::Kept kept;
    OP_REQUIRES_OK(c, this->Keep(c, count_ + 1, &kept));
    const Shards shards(strategy_, std::move(rows));
    Tensor memory;
    const int32_t* order = nullptr;
    if (in_table_order_) {
      const Id* ids = kept.values.template flat<Id>().data();
      OP_REQUIRES_OK(c, FindOrder(c, ids, kept.count, &memory, &order));
    }
    int64_t missing = -1;
    if (count_ == 1 && order == nullptr) {
      OP_REQUIRES_OK(c, PassOn(c, shards, kept, &missing));
    } else {
      OP_REQUIRES_OK(c, Partition<Id>(c, shards, kept.values, order, &missing));
    }
    OP_REQUIRES(c, missing < 0, this->NotFound(kept, missing, shards.total()));
  }

 private:
  // Hands the ids of an only shard on as they are; without a permutation they count as in order.
  static absl::Status PassOn(OpKernelContext* c, const Shards& shards,
                             const typename SparseIdsKernel<Id>::Kept& kept, int64_t* missing) {
    const auto values = kept.values.template flat<Id>();
    for (int64_t i = 0; shards.total() >= 0 && *missing < 0 && i < kept.count; ++i) {
      if (values(i) < 0 || values(i) >= shards.total()) *missing = i;
    }
    c->set_output(0, kept.values);
    Tensor* none = nullptr;
    return c->allocate_output(1, TensorShape({0, 2}), &none);
  }

  int count_ = 1;
  bool in_table_order_ = true;
  PartitionStrategy strategy_;
};

template <typename Id>
class PartitionWithPermutationOp : public OpKernel {
 public:
  explicit PartitionWithPermutationOp(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, c->GetAttr("num_partitions", &count_));
    OP_REQUIRES_OK(c, StrategyOf(c, &strategy_));
    OP_REQUIRES_OK(c, c->GetAttr("feature", &feature_));
  }

  void Compute(OpKernelContext* c) override {
    const Tensor& values = c->input(0);
    OP_REQUIRES(c, TensorShapeUtils::IsVector(values.shape()),
                FeatureError(feature_, absl::StrCat("values ", values.shape().DebugString(),
                                             "; expected a vector of ids")));
    std::vector<int64_t> rows;
    OP_REQUIRES_OK(c, ShardsOf(c->input(1), count_, strategy_, &rows));
    const Shards shards(strategy_, std::move(rows));
    int64_t missing = -1;
    // In the order that they come in: unique ids are in ascending order already.
    OP_REQUIRES_OK(c, Partition<Id>(c, shards, values, nullptr, &missing));
    OP_REQUIRES(c, missing < 0,
                OutOfRange(feature_, values.flat<Id>()(missing), -1, shards.total()));
  }

 private:
  int count_ = 1;
  PartitionStrategy strategy_;
  std::string feature_;
};

template <typename Id>
class UniqueWithCountsOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* c) override {
    const Tensor& values = c->input(0);
    OP_REQUIRES(c, TensorShapeUtils::IsVector(values.shape()),
                absl::InvalidArgumentError(absl::StrCat(
                    "values ", values.shape().DebugString(), "; expected a vector of ids")));
    const int64_t count = values.NumElements();
    OP_REQUIRES(c, count < (int64_t{1} << 30),
                absl::InvalidArgumentError(absl::StrCat(count, " ids; expected at most 2^30")));
    Tensor different, counts, *index = nullptr;
    OP_REQUIRES_OK(c, c->allocate_output(1, TensorShape({count}), &index));
    OP_REQUIRES_OK(c, FindDifferent(c, values.flat<Id>().data(), count,
                                    index->flat<int32_t>().data(), &different, &counts));
    c->set_output(0, different);
    c->set_output(2, counts);
  }
};

#define WORKBENCH_REGISTER(Kernel, Id)                                            \
  REGISTER_GUARDED_KERNEL(Name("Workbench" #Kernel)                               \
                              .Device(tensorflow::DEVICE_CPU)                     \
                              .TypeConstraint<Id>("Tid"),                         \
                          Kernel##Op<Id>)
#define WORKBENCH_REGISTER_BOTH(Kernel) \
  WORKBENCH_REGISTER(Kernel, int32_t);  \
  WORKBENCH_REGISTER(Kernel, int64_t)
WORKBENCH_REGISTER_BOTH(PreLookUp);
WORKBENCH_REGISTER_BOTH(PruneInvalidAndFillEmptyRows);
WORKBENCH_REGISTER_BOTH(PartitionWithPermutation);
WORKBENCH_REGISTER_BOTH(UniqueWithCounts);
#undef WORKBENCH_REGISTER_BOTH
#undef WORKBENCH_REGISTER

}  // namespace
}  // namespace workbench
