// The ops of fused embedding lookups, V1 and V2.
//
//   V1: PreLookUp → a gather for each shard → PostLookUp; PostLookUpGrad on the way back.
//   V2: PruneInvalidAndFillEmptyRows → UniqueWithCounts → (PartitionWithPermutation) → a gather for
//       each shard → PostLookUpV2; PostLookUpV2Grad.
//
// Between them travel: row_splits int32 [rows + 1], which ids a row has, after pruning and filling;
// permutation int32 [ids, 2], shard and position of each id, empty where one shard has them in order;
// weights float32 [ids], empty without weights. Shards are asked for rows in ascending order, because
// a table is read and updated faster so; in_table_order false leaves them as they come. What DeepRec's
// ops tell by flags of empty rows follows from row_splits: a row without an id is 0.

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace workbench {
namespace {

using tensorflow::shape_inference::DimensionHandle;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

constexpr int64_t kUnknown = InferenceContext::kUnknownDim;

// Inputs ids, indices, dense_shape, weights of ops that prune and fill.
absl::Status SparseIdsIn(InferenceContext* c) {
  ShapeHandle ids, indices, dense_shape, weights;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &ids));
  TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 2, &indices));
  TF_RETURN_IF_ERROR(c->WithRank(c->input(2), 1, &dense_shape));
  TF_RETURN_IF_ERROR(c->WithRank(c->input(3), 1, &weights));
  DimensionHandle unused;
  TF_RETURN_IF_ERROR(c->Merge(c->Dim(ids, 0), c->Dim(indices, 0), &unused));
  return c->Merge(c->Dim(indices, 1), c->Dim(dense_shape, 0), &unused);
}

// Outputs row_splits, kept_weights, sources, from output `first` on.
absl::Status KeptOut(InferenceContext* c, int first) {
  c->set_output(first, c->Vector(kUnknown));
  c->set_output(first + 1, c->Vector(kUnknown));
  c->set_output(first + 2, c->Vector(kUnknown));
  return absl::OkStatus();
}

absl::Status PreLookUpShape(InferenceContext* c) {
  TF_RETURN_IF_ERROR(SparseIdsIn(c));
  int shards;
  TF_RETURN_IF_ERROR(c->GetAttr("num_partitions", &shards));
  ShapeHandle rows;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(4), 1, &rows));
  DimensionHandle unused;
  TF_RETURN_IF_ERROR(c->WithValue(c->Dim(rows, 0), shards, &unused));
  for (int p = 0; p < shards; ++p) c->set_output(p, c->Vector(kUnknown));
  c->set_output(shards, c->Matrix(kUnknown, 2));
  return KeptOut(c, shards + 1);
}

absl::Status PruneShape(InferenceContext* c) {
  TF_RETURN_IF_ERROR(SparseIdsIn(c));
  ShapeHandle rows;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(4), 0, &rows));
  c->set_output(0, c->Vector(kUnknown));
  return KeptOut(c, 1);
}

absl::Status UniqueShape(InferenceContext* c) {
  ShapeHandle ids;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &ids));
  c->set_output(0, c->Vector(kUnknown));
  c->set_output(1, ids);
  c->set_output(2, c->Vector(kUnknown));
  return absl::OkStatus();
}

absl::Status PartitionShape(InferenceContext* c) {
  ShapeHandle ids, rows;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &ids));
  TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &rows));
  int shards;
  TF_RETURN_IF_ERROR(c->GetAttr("num_partitions", &shards));
  DimensionHandle unused;
  TF_RETURN_IF_ERROR(c->WithValue(c->Dim(rows, 0), shards, &unused));
  for (int p = 0; p < shards; ++p) c->set_output(p, c->Vector(kUnknown));
  c->set_output(shards, c->Matrix(c->Dim(ids, 0), 2));
  return absl::OkStatus();
}

// All but the last of dense_shape, then the width of the shards.
absl::Status PostLookUpShape(InferenceContext* c) {
  int shards;
  TF_RETURN_IF_ERROR(c->GetAttr("num_partitions", &shards));
  DimensionHandle dim = c->UnknownDim();
  for (int p = 0; p < shards; ++p) {
    ShapeHandle shard;
    TF_RETURN_IF_ERROR(c->WithRank(c->input(p), 2, &shard));
    TF_RETURN_IF_ERROR(c->Merge(dim, c->Dim(shard, 1), &dim));
  }
  ShapeHandle dense_shape, rows;
  TF_RETURN_IF_ERROR(c->MakeShapeFromShapeTensor(2 * shards, &dense_shape));
  if (!c->RankKnown(dense_shape)) {
    c->set_output(0, c->UnknownShape());
    return absl::OkStatus();
  }
  TF_RETURN_IF_ERROR(c->WithRankAtLeast(dense_shape, 2, &dense_shape));
  TF_RETURN_IF_ERROR(c->Subshape(dense_shape, 0, -1, &rows));
  ShapeHandle out;
  TF_RETURN_IF_ERROR(c->Concatenate(rows, c->Vector(dim), &out));
  c->set_output(0, out);
  return absl::OkStatus();
}

absl::Status PostLookUpGradShape(InferenceContext* c) {
  int shards;
  TF_RETURN_IF_ERROR(c->GetAttr("num_partitions", &shards));
  DimensionHandle dim = c->UnknownDim();
  if (c->RankKnown(c->input(0)) && c->Rank(c->input(0)) > 0) dim = c->Dim(c->input(0), -1);
  for (int p = 0; p < shards; ++p) {
    ShapeHandle values;
    TF_RETURN_IF_ERROR(c->WithRank(c->input(1 + p), 1, &values));
    c->set_output(p, c->Matrix(c->Dim(values, 0), dim));
  }
  c->set_output(shards, c->Vector(kUnknown));
  return absl::OkStatus();
}

}  // namespace

// ids below 0 are dropped where prune_invalid_id is set, weights not above 0 where
// prune_invalid_weight is; a row that then has no id gets default_id, with weight 1, where
// fill_empty_row is set. An id beyond table_rows is an error that names `feature`; table_rows -1
// lets any key pass. `sources` says where a kept weight stood; both are empty without weights.
#define WORKBENCH_SPARSE_IDS_OP(name)                                                            \
  REGISTER_OP(name)                                                                              \
      .Input("ids: Tid")                                                                         \
      .Input("indices: int64")                                                                   \
      .Input("dense_shape: int64")                                                               \
      .Input("weights: float")                                                                   \
      .Input("table_rows: int64")                                                                \
      .Attr("Tid: {int32, int64}")                                                               \
      .Attr("use_weights: bool = false")                                                         \
      .Attr("prune_invalid_id: bool = false")                                                    \
      .Attr("prune_invalid_weight: bool = false")                                                \
      .Attr("fill_empty_row: bool = false")                                                      \
      .Attr("default_id: int = 0")                                                               \
      .Attr("feature: string = ''")

WORKBENCH_SPARSE_IDS_OP("WorkbenchPreLookUp")
    .Attr("num_partitions: int >= 1 = 1")
    .Attr("partition_strategy: {'div', 'mod', 'mod_key'} = 'div'")
    .Attr("in_table_order: bool = true")
    .Output("partitioned_values: num_partitions * Tid")
    .Output("permutation: int32")
    .Output("row_splits: int32")
    .Output("kept_weights: float")
    .Output("sources: int32")
    .SetShapeFn(PreLookUpShape);

WORKBENCH_SPARSE_IDS_OP("WorkbenchPruneInvalidAndFillEmptyRows")
    .Output("values: Tid")
    .Output("row_splits: int32")
    .Output("kept_weights: float")
    .Output("sources: int32")
    .SetShapeFn(PruneShape);

#undef WORKBENCH_SPARSE_IDS_OP

REGISTER_OP("WorkbenchUniqueWithCounts")
    .Input("values: Tid")
    .Attr("Tid: {int32, int64}")
    .Output("unique_values: Tid")
    .Output("unique_index: int32")
    .Output("unique_counts: int32")
    .SetShapeFn(UniqueShape);

REGISTER_OP("WorkbenchPartitionWithPermutation")
    .Input("values: Tid")
    .Input("table_rows: int64")
    .Attr("Tid: {int32, int64}")
    .Attr("num_partitions: int >= 1")
    .Attr("partition_strategy: {'div', 'mod', 'mod_key'} = 'div'")
    .Attr("feature: string = ''")
    .Output("partitioned_values: num_partitions * Tid")
    .Output("permutation: int32")
    .SetShapeFn(PartitionShape);

// max_norm below 0 leaves vectors as long as they are. `partitioned_values`, the ids that were looked
// up, are for the gradient: they say how many there are when the vectors are gone.
#define WORKBENCH_COMBINING_OP(name)                                                             \
  REGISTER_OP(name)                                                                              \
      .Attr("T: {float, half, bfloat16}")                                                        \
      .Attr("Tid: {int32, int64}")                                                               \
      .Attr("num_partitions: int >= 1 = 1")                                                      \
      .Attr("combiner: {'sum', 'mean', 'sqrtn'}")                                                \
      .Attr("use_weights: bool = false")                                                         \
      .Attr("max_norm: float = -1.0")

WORKBENCH_COMBINING_OP("WorkbenchPostLookUp")
    .Input("shards: num_partitions * T")
    .Input("partitioned_values: num_partitions * Tid")
    .Input("dense_shape: int64")
    .Input("permutation: int32")
    .Input("row_splits: int32")
    .Input("weights: float")
    .Output("vectors: T")
    .SetShapeFn(PostLookUpShape);

WORKBENCH_COMBINING_OP("WorkbenchPostLookUpV2")
    .Input("shards: num_partitions * T")
    .Input("partitioned_values: num_partitions * Tid")
    .Input("dense_shape: int64")
    .Input("unique_index: int32")
    .Input("permutation: int32")
    .Input("row_splits: int32")
    .Input("weights: float")
    .Output("vectors: T")
    .SetShapeFn(PostLookUpShape);

// `shards` are read only for max_norm and for the gradient of weights; else none are given, so that
// nothing holds their memory until the way back.
WORKBENCH_COMBINING_OP("WorkbenchPostLookUpGrad")
    .Input("gradient: T")
    .Input("partitioned_values: num_partitions * Tid")
    .Input("permutation: int32")
    .Input("row_splits: int32")
    .Input("weights: float")
    .Input("shards: num_shards * T")
    .Attr("num_shards: int >= 0")
    .Output("shard_gradients: num_partitions * T")
    .Output("weights_gradient: float")
    .SetShapeFn(PostLookUpGradShape);

WORKBENCH_COMBINING_OP("WorkbenchPostLookUpV2Grad")
    .Input("gradient: T")
    .Input("partitioned_values: num_partitions * Tid")
    .Input("unique_index: int32")
    .Input("permutation: int32")
    .Input("row_splits: int32")
    .Input("weights: float")
    .Input("shards: num_shards * T")
    .Attr("num_shards: int >= 0")
    .Output("shard_gradients: num_partitions * T")
    .Output("weights_gradient: float")
    .SetShapeFn(PostLookUpGradShape);

#undef WORKBENCH_COMBINING_OP

}  // namespace workbench
