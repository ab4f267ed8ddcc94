// The ops of a fused lookup after its gathers, V1 and V2; lookup/lookup_ops.cc has those before.

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace workbench {
namespace {

using tensorflow::shape_inference::DimensionHandle;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

constexpr int64_t kUnknown = InferenceContext::kUnknownDim;

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
    .SetShapeFn(PostLookUpShape)
    .Doc(R"doc(
Combines the gathered vectors of each row.

Errors are INVALID_ARGUMENT: inputs whose shapes do not fit, or that name a vector outside its
shard.

shards: per shard [its rows, dim] what was gathered from it.
partitioned_values: per shard [its rows] the rows that were gathered; the gradient reads their
  number.
dense_shape: [rank], at least 2, of the ids.
permutation: [ids, 2] shard and position of each id; [0, 2] if the only shard has them in order.
row_splits: [rows + 1] the ids of row r are those from row_splits[r] to row_splits[r + 1].
weights: [ids]; empty without use_weights.
vectors: dense_shape without its last dimension + [dim]; a row without an id is 0.
combiner: sum; mean: divided by the number of ids, or the sum of weights; sqrtn: divided by the
  square root of that number, or of the sum of squared weights.
use_weights: whether weights are given.
max_norm: clip the L2 norm of each vector to this before weighting; below 0: do not clip.
)doc");

WORKBENCH_COMBINING_OP("WorkbenchPostLookUpV2")
    .Input("shards: num_partitions * T")
    .Input("partitioned_values: num_partitions * Tid")
    .Input("dense_shape: int64")
    .Input("unique_index: int32")
    .Input("permutation: int32")
    .Input("row_splits: int32")
    .Input("weights: float")
    .Output("vectors: T")
    .SetShapeFn(PostLookUpShape)
    .Doc(R"doc(
Combines the gathered vectors of each row, from unique ids.

Errors are INVALID_ARGUMENT: inputs whose shapes do not fit, or that name a vector outside its
shard.

shards: per shard [its rows, dim] what was gathered from it.
partitioned_values: per shard [its rows] the rows that were gathered; the gradient reads their
  number.
dense_shape: [rank], at least 2, of the ids.
unique_index: [ids] the position of each id among the unique ones.
permutation: [ids, 2] shard and position of each unique id; [0, 2] if the only shard has them in
  order.
row_splits: [rows + 1] the ids of row r are those from row_splits[r] to row_splits[r + 1].
weights: [ids]; empty without use_weights.
vectors: dense_shape without its last dimension + [dim]; a row without an id is 0.
combiner: sum; mean: divided by the number of ids, or the sum of weights; sqrtn: divided by the
  square root of that number, or of the sum of squared weights.
use_weights: whether weights are given.
max_norm: clip the L2 norm of each vector to this before weighting; below 0: do not clip.
)doc");

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
    .SetShapeFn(PostLookUpGradShape)
    .Doc(R"doc(
The gradient of WorkbenchPostLookUp.

gradient: of its output.
partitioned_values: per shard [its rows] the rows that were gathered; the gradient reads their
  number.
permutation: [ids, 2] shard and position of each id; [0, 2] if the only shard has them in order.
row_splits: [rows + 1] the ids of row r are those from row_splits[r] to row_splits[r + 1].
weights: [ids]; empty without use_weights.
shards: what was gathered, only if max_norm or the gradient of weights needs it: an op that reads
  them holds their memory.
num_shards: num_partitions, or 0 without shards.
shard_gradients: per shard [its rows, dim].
weights_gradient: [ids]; empty without use_weights.
combiner: sum; mean: divided by the number of ids, or the sum of weights; sqrtn: divided by the
  square root of that number, or of the sum of squared weights.
use_weights: whether weights are given.
max_norm: clip the L2 norm of each vector to this before weighting; below 0: do not clip.
)doc");

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
    .SetShapeFn(PostLookUpGradShape)
    .Doc(R"doc(
The gradient of WorkbenchPostLookUpV2.

gradient: of its output.
partitioned_values: per shard [its rows] the rows that were gathered; the gradient reads their
  number.
unique_index: [ids] the position of each id among the unique ones.
permutation: [ids, 2] shard and position of each unique id; [0, 2] if the only shard has them in
  order.
row_splits: [rows + 1] the ids of row r are those from row_splits[r] to row_splits[r + 1].
weights: [ids]; empty without use_weights.
shards: what was gathered, only if max_norm or the gradient of weights needs it: an op that reads
  them holds their memory.
num_shards: num_partitions, or 0 without shards.
shard_gradients: per shard [its rows, dim].
weights_gradient: [ids]; empty without use_weights.
combiner: sum; mean: divided by the number of ids, or the sum of weights; sqrtn: divided by the
  square root of that number, or of the sum of squared weights.
use_weights: whether weights are given.
max_norm: clip the L2 norm of each vector to this before weighting; below 0: do not clip.
)doc");

#undef WORKBENCH_COMBINING_OP

}  // namespace workbench
