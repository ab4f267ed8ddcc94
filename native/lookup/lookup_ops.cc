// The ops of a fused lookup before its gathers, V1 and V2.
//
//   V1: PreLookUp → a gather for each shard → PostLookUp; PostLookUpGrad for the gradient.
//   V2: PruneInvalidAndFillEmptyRows → UniqueWithCounts → (PartitionWithPermutation) → a gather for
//       each shard → PostLookUpV2; PostLookUpV2Grad.
//
// PostLookUp and its kin are in combine/. Between the ops travel row_splits int32 [rows + 1], the
// ids of each row after pruning and filling; permutation int32 [ids, 2], shard and position of each
// id, empty where one shard has all of them in order; weights float32 [ids], empty without weights.
// DeepRec's ops have flags of empty rows instead of row_splits: a row without an id has length 0.

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

}  // namespace

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
    .SetShapeFn(PreLookUpShape)
    .Doc(R"doc(
Prunes ids, fills empty rows, and distributes the ids over the shards of a table.

Errors are INVALID_ARGUMENT and name the feature: an id outside the table, indices outside
dense_shape, shapes that do not fit.

ids: [n] ids, the values of a SparseTensor.
indices: [n, rank] its indices.
dense_shape: [rank] its shape, rank at least 2; rows are the product of all but the last dimension.
weights: [n] a weight of each id; ignored unless use_weights.
table_rows: [num_partitions] the rows of each shard; -1 lets any key pass.
use_weights: whether weights are given.
prune_invalid_id: drop ids below 0.
prune_invalid_weight: drop ids whose weight is not above 0; needs use_weights.
fill_empty_row: give default_id, with weight 1, to a row that has no id, or none left.
default_id: the id of such rows.
feature: name of the feature in errors.
num_partitions: number of shards.
partition_strategy: how ids are distributed: div, mod, or mod_key, which takes (id mod 1000) mod
  shards and keeps the id.
in_table_order: ask each shard for its rows in ascending order, in which a table is read and updated
  faster; false leaves the order of the batch.
partitioned_values: per shard [its ids] the rows to gather from it.
permutation: [kept ids, 2] shard and position of each id; [0, 2] if the only shard has them in
  order.
row_splits: [rows + 1] the ids of row r are those from row_splits[r] to row_splits[r + 1].
kept_weights: [kept ids] their weights; empty without use_weights.
sources: [kept ids] the position in `weights` of each kept weight, -1 of a filled row; empty without
  use_weights.
)doc");

WORKBENCH_SPARSE_IDS_OP("WorkbenchPruneInvalidAndFillEmptyRows")
    .Output("values: Tid")
    .Output("row_splits: int32")
    .Output("kept_weights: float")
    .Output("sources: int32")
    .SetShapeFn(PruneShape)
    .Doc(R"doc(
Prunes ids and fills empty rows.

Errors are INVALID_ARGUMENT and name the feature: an id outside the table, indices outside
dense_shape, shapes that do not fit.

ids: [n] ids, the values of a SparseTensor.
indices: [n, rank] its indices.
dense_shape: [rank] its shape, rank at least 2; rows are the product of all but the last dimension.
weights: [n] a weight of each id; ignored unless use_weights.
table_rows: [] the rows of the table; -1 lets any key pass.
use_weights: whether weights are given.
prune_invalid_id: drop ids below 0.
prune_invalid_weight: drop ids whose weight is not above 0; needs use_weights.
fill_empty_row: give default_id, with weight 1, to a row that has no id, or none left.
default_id: the id of such rows.
feature: name of the feature in errors.
values: [kept ids] the ids that are left, row by row.
row_splits: [rows + 1] the ids of row r are those from row_splits[r] to row_splits[r + 1].
kept_weights: [kept ids] their weights; empty without use_weights.
sources: [kept ids] the position in `weights` of each kept weight, -1 of a filled row; empty without
  use_weights.
)doc");

#undef WORKBENCH_SPARSE_IDS_OP

REGISTER_OP("WorkbenchUniqueWithCounts")
    .Input("values: Tid")
    .Attr("Tid: {int32, int64}")
    .Output("unique_values: Tid")
    .Output("unique_index: int32")
    .Output("unique_counts: int32")
    .SetShapeFn(UniqueShape)
    .Doc(R"doc(
Finds each id once, in ascending order where the range of the ids allows it, else in order of
appearance.

values: [n] ids.
unique_values: [m] each id once.
unique_index: [n] the position of each id in unique_values.
unique_counts: [m] how often each id came.
)doc");

REGISTER_OP("WorkbenchPartitionWithPermutation")
    .Input("values: Tid")
    .Input("table_rows: int64")
    .Attr("Tid: {int32, int64}")
    .Attr("num_partitions: int >= 1")
    .Attr("partition_strategy: {'div', 'mod', 'mod_key'} = 'div'")
    .Attr("feature: string = ''")
    .Output("partitioned_values: num_partitions * Tid")
    .Output("permutation: int32")
    .SetShapeFn(PartitionShape)
    .Doc(R"doc(
Distributes ids over the shards of a table. An id outside the table is INVALID_ARGUMENT.

values: [n] ids.
table_rows: [num_partitions] the rows of each shard; -1 lets any key pass.
num_partitions: number of shards.
partition_strategy: as in WorkbenchPreLookUp.
feature: name of the feature in errors.
partitioned_values: per shard [its ids] the rows to gather from it.
permutation: [n, 2] shard and position of each id.
)doc");

}  // namespace workbench
