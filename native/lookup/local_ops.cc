// The ops of a lookup whose table is one variable on the lookup's own device: they combine rows in
// the table, without a copy of the gathered rows.
//
//   V1: PreLookUp → LocalLookUp. V2: PruneInvalidAndFillEmptyRows → UniqueWithCounts → LocalLookUp.
//
// They have neither weights nor max_norm; lookups with those gather.

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace workbench {
namespace {

using tensorflow::shape_inference::DimensionHandle;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

// All but the last of dense_shape, input 1, then `dim`.
absl::Status Combined(InferenceContext* c, DimensionHandle dim) {
  ShapeHandle dense_shape, rows, out;
  TF_RETURN_IF_ERROR(c->MakeShapeFromShapeTensor(1, &dense_shape));
  if (!c->RankKnown(dense_shape)) {
    c->set_output(0, c->UnknownShape());
    return absl::OkStatus();
  }
  TF_RETURN_IF_ERROR(c->WithRankAtLeast(dense_shape, 2, &dense_shape));
  TF_RETURN_IF_ERROR(c->Subshape(dense_shape, 0, -1, &rows));
  TF_RETURN_IF_ERROR(c->Concatenate(rows, c->Vector(dim), &out));
  c->set_output(0, out);
  return absl::OkStatus();
}

absl::Status LocalShape(InferenceContext* c) {
  ShapeHandle table;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &table));
  return Combined(c, c->Dim(table, 1));
}

absl::Status ResourceLocalShape(InferenceContext* c) {
  const auto* held = c->input_handle_shapes_and_types(0);
  ShapeHandle table = held == nullptr || held->empty() ? c->UnknownShape() : (*held)[0].shape;
  TF_RETURN_IF_ERROR(c->WithRank(table, 2, &table));
  return Combined(c, c->Dim(table, 1));
}

absl::Status LocalGradShape(InferenceContext* c) {
  ShapeHandle gradient;
  TF_RETURN_IF_ERROR(c->WithRankAtLeast(c->input(0), 2, &gradient));
  c->set_output(0, c->Vector(InferenceContext::kUnknownDim));
  c->set_output(1, c->Matrix(InferenceContext::kUnknownDim, c->Dim(gradient, -1)));
  return absl::OkStatus();
}

}  // namespace

#define WORKBENCH_LOCAL_OP(name)                                                                 \
  REGISTER_OP(name)                                                                              \
      .Attr("T: {float, half, bfloat16}")                                                        \
      .Attr("combiner: {'sum', 'mean', 'sqrtn'}")                                                \
      .Attr("use_index: bool = false")

WORKBENCH_LOCAL_OP("WorkbenchLocalLookUp")
    .Input("table: T")
    .Input("dense_shape: int64")
    .Input("values: int64")
    .Input("unique_index: int32")
    .Input("row_splits: int32")
    .Output("vectors: T")
    .SetShapeFn(LocalShape)
    .Doc(R"doc(
Combines the rows of a table for each row of a batch. A row outside the table is INVALID_ARGUMENT.

table: [table rows, dim].
dense_shape: [rank], at least 2, of the ids.
values: [ids] rows of the table; with use_index [m], each row once.
unique_index: [ids] the position in `values` of each id with use_index; else empty.
row_splits: [rows + 1] the ids of row r are those from row_splits[r] to row_splits[r + 1].
vectors: dense_shape without its last dimension + [dim]; a row without an id is 0.
combiner: sum; mean: divided by the number of ids; sqrtn: by its square root.
use_index: whether unique_index is given.
)doc");

WORKBENCH_LOCAL_OP("WorkbenchResourceLocalLookUp")
    .Input("table: resource")
    .Input("dense_shape: int64")
    .Input("values: int64")
    .Input("unique_index: int32")
    .Input("row_splits: int32")
    .Output("vectors: T")
    .SetIsStateful()
    .SetShapeFn(ResourceLocalShape)
    .Doc(R"doc(
WorkbenchLocalLookUp of a resource variable, which it reads under the variable's lock, without a
copy.

table: handle of a variable [table rows, dim].
)doc");

WORKBENCH_LOCAL_OP("WorkbenchLocalLookUpGrad")
    .Input("gradient: T")
    .Input("values: int64")
    .Input("unique_index: int32")
    .Input("row_splits: int32")
    .Output("table_rows: int64")
    .Output("row_gradients: T")
    .SetShapeFn(LocalGradShape)
    .Doc(R"doc(
The gradient of WorkbenchLocalLookUp: of each row of the table that was read, once.

gradient: of its output.
values: as its input.
unique_index: as its input.
row_splits: as its input.
table_rows: [m] the rows, ascending where the range of the rows allows it.
row_gradients: [m, dim].
)doc");

#undef WORKBENCH_LOCAL_OP

}  // namespace workbench
