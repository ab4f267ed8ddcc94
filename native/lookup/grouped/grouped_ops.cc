// The ops of a grouped lookup: all features of a model in one op, straight from their tables.
//
//   (Resource)GroupedLookUp; GroupedLookUpGrad for the gradient of all tables, and
//   (Resource)GroupedLookUpWeightGrad for that of the ids' weights;
//   (Resource)GroupedApply for the gradient of tables and an optimizer's update in one.
//
// Each table is one variable on the op's own device.

#include <string>
#include <vector>

#include "lookup/grouped/grouped_ops.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace workbench {
namespace {

using tensorflow::shape_inference::DimensionHandle;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

struct Counts {
  int tables = 0, features = 0;
  bool concatenated = false;
  std::vector<int64_t> table_of, dims;
  std::vector<bool> ends_with_ids;
};

absl::Status Read(InferenceContext* c, Counts* counts) {
  TF_RETURN_IF_ERROR(c->GetAttr("N", &counts->tables));
  TF_RETURN_IF_ERROR(c->GetAttr("F", &counts->features));
  TF_RETURN_IF_ERROR(c->GetAttr("concatenated", &counts->concatenated));
  TF_RETURN_IF_ERROR(c->GetAttr("table_of", &counts->table_of));
  int outputs = 0;
  TF_RETURN_IF_ERROR(c->GetAttr("M", &outputs));
  if (outputs != (counts->concatenated ? 1 : counts->features)) {
    return absl::InvalidArgumentError("M must be F, or 1 where the output is concatenated");
  }
  if (counts->table_of.size() != static_cast<size_t>(counts->features)) {
    return absl::InvalidArgumentError("table_of must name a table for each feature");
  }
  TF_RETURN_IF_ERROR(c->GetAttr("ends_with_ids", &counts->ends_with_ids));
  TF_RETURN_IF_ERROR(c->GetAttr("dims", &counts->dims));
  if (counts->dims.size() != static_cast<size_t>(counts->tables)) {
    return absl::InvalidArgumentError("dims must say how wide each table is");
  }
  for (int64_t table : counts->table_of) {
    if (table < 0 || table >= counts->tables) {
      return absl::InvalidArgumentError("table_of names a table that is not given");
    }
  }
  return absl::OkStatus();
}

// All but the last dimension of feature f's ids, where its inputs begin at `first`.
absl::Status Examples(InferenceContext* c, const Counts& counts, int first, int f,
                      ShapeHandle* examples) {
  const ShapeHandle rows = c->input(first + counts.features + f);
  if (c->RankKnown(rows) && c->Rank(rows) == 0) {
    *examples = c->input(first + f);
    return absl::OkStatus();
  }
  if (c->RankKnown(rows) && c->Rank(rows) == 1) {
    DimensionHandle count = c->UnknownDim();
    if (c->ValueKnown(c->Dim(rows, 0))) {
      TF_RETURN_IF_ERROR(c->Subtract(c->Dim(rows, 0), 1, &count));
    }
    *examples = c->Vector(count);
    return absl::OkStatus();
  }
  if (static_cast<size_t>(f) < counts.ends_with_ids.size() && counts.ends_with_ids[f]) {
    *examples = c->RankKnown(rows) ? c->Vector(c->UnknownDim()) : c->UnknownShape();
    return absl::OkStatus();
  }
  ShapeHandle shape;
  TF_RETURN_IF_ERROR(c->MakeShapeFromShapeTensor(first + 2 * counts.features + f, &shape));
  if (!c->RankKnown(rows) || !c->RankKnown(shape)) {
    *examples = c->UnknownShape();
    return absl::OkStatus();
  }
  TF_RETURN_IF_ERROR(c->WithRankAtLeast(shape, 2, &shape));
  return c->Subshape(shape, 0, -1, examples);
}

absl::Status GroupedGradShape(InferenceContext* c) {
  Counts counts;
  TF_RETURN_IF_ERROR(Read(c, &counts));
  for (int t = 0; t < counts.tables; ++t) {
    const DimensionHandle count = c->UnknownDim();
    c->set_output(t, c->Vector(count));
    c->set_output(counts.tables + t, c->Matrix(count, c->MakeDim(counts.dims[t])));
  }
  return absl::OkStatus();
}

absl::Status WeightGradShape(InferenceContext* c) {
  std::vector<ShapeHandle> weights;
  TF_RETURN_IF_ERROR(c->input("weights", &weights));
  return c->set_output("weight_gradients", weights);
}

}  // namespace

absl::Status GroupedShape(InferenceContext* c) {
  Counts counts;
  TF_RETURN_IF_ERROR(Read(c, &counts));
  int64_t width = 0;
  ShapeHandle together = c->Vector(InferenceContext::kUnknownDim);
  for (int f = 0; f < counts.features; ++f) {
    const int64_t dim = counts.dims[counts.table_of[f]];
    ShapeHandle examples, out;
    TF_RETURN_IF_ERROR(Examples(c, counts, counts.tables, f, &examples));
    width += dim;
    if (counts.concatenated) {
      TF_RETURN_IF_ERROR(c->Merge(together, examples, &together));
    } else {
      TF_RETURN_IF_ERROR(c->Concatenate(examples, c->Vector(dim), &out));
      c->set_output(f, out);
    }
  }
  if (counts.concatenated) c->set_output(0, c->Matrix(c->Dim(together, 0), width));
  return absl::OkStatus();
}

WORKBENCH_GROUPED_IDS(REGISTER_OP("WorkbenchGroupedLookUp").Input("tables: N * T"))
    .Output("vectors: M * T")
    .SetShapeFn(GroupedShape)
    .Doc(R"doc(
Looks up the embeddings of many features, and combines those of each example.

Errors are INVALID_ARGUMENT and name the feature: an id outside its table, indices outside
dense_shape, shapes that do not fit.

tables: each [table rows, dim].
ids: of each feature [n] ids.
rows: of each feature indices [n, rank] of a SparseTensor, or row_splits [examples + 1] of a
  RaggedTensor, or a scalar: ids, then of any shape, are one for each example. Indices may come in
  any order; those in order of their rows take less time.
dense_shapes: of each feature [rank], at least 2; read of SparseTensors alone, which do not end with
  their ids.
weights: of some features [n], what the embedding of each id is multiplied with.
weights_of: which features those are, each once.
table_of: the table of each feature.
combiners: sum; mean: divided by the number of ids; sqrtn: by its square root. Of weighted ids by
  the sum of the weights, and by the root of that of their squares.
prune_invalid_ids: drop ids below 0, and, unless they are summed, those with a weight that is not
  above 0.
fill_empty_rows: give default_id to an example that has no id, or none left.
default_ids: the id of such examples.
ends_with_ids: the examples of a SparseTensor of rank 2, whose ids come in order, end with the last
  one that has an id. An empty list: of no feature.
max_norms: longer embeddings of a feature are shortened to this length; below 0 none. An empty list:
  of no feature. Gradients are those by the shortened embeddings.
dims: columns of each table.
features: names, for errors.
concatenated: one output of all features beside each other instead of one each.
vectors: of each feature dense_shape without its last dimension, or the shape of its dense ids,
  + [dim]; an example without an id is 0. Concatenated [examples, sum of dims].
)doc");

WORKBENCH_GROUPED_IDS(REGISTER_OP("WorkbenchResourceGroupedLookUp").Input("tables: N * resource"))
    .Output("vectors: M * T")
    .SetIsStateful()
    .SetShapeFn(GroupedShape)
    .Doc(R"doc(
WorkbenchGroupedLookUp of resource variables, which it reads under their locks, without a copy.

tables: handles of variables, each [table rows, dim].
)doc");

WORKBENCH_GROUPED_IDS(REGISTER_OP("WorkbenchGroupedLookUpGrad").Input("gradients: M * T"))
    .Attr("zero_ids: list(int) = []")
    .Output("table_rows: N * int64")
    .Output("row_gradients: N * T")
    .SetShapeFn(GroupedGradShape)
    .Doc(R"doc(
The gradient of a grouped lookup: of each row of each table that was read, once.

gradients: of its outputs.
ids, rows, dense_shapes, weights: as its inputs.
zero_ids: of a feature the row of its table that also has a gradient of 0 where an example has no
  id, or none left; below 0 none. An empty list: of no feature.
table_rows: of each table [m], the rows in ascending order.
row_gradients: of each table [m, dim].
)doc");

#define WORKBENCH_GROUPED_WEIGHT_GRAD(op)              \
  WORKBENCH_GROUPED_IDS(op.Input("gradients: M * T"))  \
      .Output("weight_gradients: W * float")           \
      .SetShapeFn(WeightGradShape)

WORKBENCH_GROUPED_WEIGHT_GRAD(
    REGISTER_OP("WorkbenchGroupedLookUpWeightGrad").Input("tables: N * T"))
    .Doc(R"doc(
The gradient of a grouped lookup by the weights of its ids.

tables, ids, rows, dense_shapes, weights: as its inputs.
gradients: of its outputs.
weight_gradients: of the shapes of weights; 0 of an id that was dropped.
)doc");

WORKBENCH_GROUPED_WEIGHT_GRAD(
    REGISTER_OP("WorkbenchResourceGroupedLookUpWeightGrad").Input("tables: N * resource"))
    .SetIsStateful()
    .Doc(R"doc(
WorkbenchGroupedLookUpWeightGrad of resource variables.

tables: handles of variables, each [table rows, dim].
)doc");

#define WORKBENCH_RULES                                                               \
  "rule: {'gradient_descent', 'adagrad', 'adagrad_of_squares', 'row_wise_adagrad', " \
  "'adam', 'ftrl'}"
#define WORKBENCH_ALL_ROWS_RULES "rule: {'decaying_adam', 'keras_adam', 'keras_adam_of_squares'}"
#define WORKBENCH_GROUPED_APPLY(op)                                                        \
  WORKBENCH_GROUPED_IDS(op.Input("scalars: K * float").Input("gradients: M * T"))          \
      .Attr("S: int >= 0")                                                                 \
      .Attr("K: int >= 1")                                                                 \
      .Attr("columns: list(int)")                                                          \
      .Attr("use_locking: bool = false")                                                   \
      .SetShapeFn(tensorflow::shape_inference::NoOutputs)

WORKBENCH_GROUPED_APPLY(REGISTER_OP("WorkbenchGroupedApply")
                            .Input("tables: Ref(N * float)")
                            .Input("slots: Ref(S * float)")
                            .Attr(WORKBENCH_RULES))
    .Doc(R"doc(
WorkbenchGroupedLookUpGrad and WorkbenchRowsApply in one: the gradient of each row that was read is
applied as soon as it is summed.

tables: each [table rows, dim], and each another one.
slots: the optimizer's, of one table after the other.
rule: as of WorkbenchRowsApply; adagrad_of_squares is adagrad where the square of each gradient of a
  row counts, not that of their sum.
scalars: as of WorkbenchRowsApply.
gradients: of the outputs of the lookup.
ids, rows, dense_shapes, weights: as inputs of the lookup; those of some of its features will do.
columns: where in a concatenated gradient each feature begins.
use_locking: hold the variables' locks against other updates meanwhile.
)doc");

WORKBENCH_GROUPED_APPLY(REGISTER_OP("WorkbenchResourceGroupedApply")
                            .Input("tables: N * resource")
                            .Input("slots: S * resource")
                            .Attr(WORKBENCH_RULES))
    .SetIsStateful()
    .Doc(R"doc(
WorkbenchGroupedApply of resource variables.

tables: handles of float32 variables, each [table rows, dim].
slots: handles of the optimizer's slots.
)doc");

WORKBENCH_GROUPED_APPLY(REGISTER_OP("WorkbenchGroupedApplyAll")
                            .Input("tables: Ref(N * float)")
                            .Input("slots: Ref(S * float)")
                            .Attr(WORKBENCH_ALL_ROWS_RULES))
    .Doc(R"doc(
WorkbenchGroupedApply for a rule that changes rows that were not touched for too: the tables and their
slots are gone through once.

rule: the moments of all rows decay, and move their rows; slots first and second moment,
  [table rows, dim]. decaying_adam: as TensorFlow computes it; keras_adam: as Keras does;
  keras_adam_of_squares: where the square of each gradient of a row counts, not that of their sum.
scalars: the learning rate, corrected for the moments' beginning at 0; of decaying_adam beta1, beta2,
  epsilon, 1 - beta1 and 1 - beta2; of the others 1 - beta1, 1 - beta2, epsilon.
)doc");

WORKBENCH_GROUPED_APPLY(REGISTER_OP("WorkbenchResourceGroupedApplyAll")
                            .Input("tables: N * resource")
                            .Input("slots: S * resource")
                            .Attr(WORKBENCH_ALL_ROWS_RULES))
    .SetIsStateful()
    .Doc(R"doc(
WorkbenchGroupedApplyAll of resource variables.

tables: handles of float32 variables, each [table rows, dim].
slots: handles of the optimizer's slots.
)doc");

#undef WORKBENCH_GROUPED_APPLY
#undef WORKBENCH_RULES
#undef WORKBENCH_ALL_ROWS_RULES
#undef WORKBENCH_GROUPED_WEIGHT_GRAD

}  // namespace workbench
