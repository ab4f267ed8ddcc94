// Updates of rows of a float32 variable, from the gradient of a fused lookup, which has each row
// once.
//
// Results and errors are those of stock TensorFlow's ScatterSub and SparseApplyAdagrad.

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace workbench {
namespace {

using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

absl::Status UpdateShape(InferenceContext* c) {
  const int last = c->num_inputs() - 1;
  ShapeHandle scalar, grads, rows;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(last - 2), 0, &scalar));
  TF_RETURN_IF_ERROR(c->WithRank(c->input(last - 1), 2, &grads));
  TF_RETURN_IF_ERROR(c->WithRank(c->input(last), 1, &rows));
  tensorflow::shape_inference::DimensionHandle count;
  return c->Merge(c->Dim(grads, 0), c->Dim(rows, 0), &count);
}

}  // namespace

#define WORKBENCH_ROW_UPDATE_INPUTS \
  .Input("learning_rate: float")    \
      .Input("gradients: float")    \
      .Input("rows: int64")         \
      .Attr("use_locking: bool = false")

REGISTER_OP("WorkbenchRowsApplyGradientDescent")
    .Input("table: Ref(float)") WORKBENCH_ROW_UPDATE_INPUTS.SetShapeFn(UpdateShape)
    .Doc(R"doc(
table[rows] -= learning_rate * gradients.

table: [table rows, dim].
learning_rate: scalar.
gradients: [m, dim] a gradient for each row.
rows: [m] rows of the table; a row outside it is INVALID_ARGUMENT.
use_locking: hold the variable's lock meanwhile; resource variables always do.
)doc");

REGISTER_OP("WorkbenchResourceRowsApplyGradientDescent")
    .Input("table: resource") WORKBENCH_ROW_UPDATE_INPUTS.SetIsStateful()
    .SetShapeFn(UpdateShape)
    .Doc(R"doc(
table[rows] -= learning_rate * gradients, of a resource variable.

table: handle of a variable [table rows, dim].
learning_rate: scalar.
gradients: [m, dim] a gradient for each row.
rows: [m] rows of the table; a row outside it is INVALID_ARGUMENT.
use_locking: hold the variable's lock meanwhile; resource variables always do.
)doc");

REGISTER_OP("WorkbenchRowsApplyAdagrad")
    .Input("table: Ref(float)")
    .Input("accumulator: Ref(float)") WORKBENCH_ROW_UPDATE_INPUTS.SetShapeFn(UpdateShape)
    .Doc(R"doc(
accumulator[rows] += gradients ** 2; table[rows] -= learning_rate * gradients /
sqrt(accumulator[rows]).

table: [table rows, dim].
accumulator: as table.
learning_rate: scalar.
gradients: [m, dim] a gradient for each row.
rows: [m] rows of the table; a row outside it is INVALID_ARGUMENT.
use_locking: hold the variable's lock meanwhile; resource variables always do.
)doc");

REGISTER_OP("WorkbenchResourceRowsApplyAdagrad")
    .Input("table: resource")
    .Input("accumulator: resource") WORKBENCH_ROW_UPDATE_INPUTS.SetIsStateful()
    .SetShapeFn(UpdateShape)
    .Doc(R"doc(
WorkbenchRowsApplyAdagrad of resource variables.

table: handle of a variable [table rows, dim].
accumulator: handle of a variable of the same shape.
learning_rate: scalar.
gradients: [m, dim] a gradient for each row.
rows: [m] rows of the table; a row outside it is INVALID_ARGUMENT.
use_locking: hold the variable's lock meanwhile; resource variables always do.
)doc");

#undef WORKBENCH_ROW_UPDATE_INPUTS

}  // namespace workbench
