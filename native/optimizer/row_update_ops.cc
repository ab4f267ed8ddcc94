// Updates of some rows of a variable, from the gradient that a fused lookup makes: each row once.
//
// They say what stock TensorFlow's ScatterSub and SparseApplyAdagrad say, for float32.

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
    .Input("table: Ref(float)") WORKBENCH_ROW_UPDATE_INPUTS.SetShapeFn(UpdateShape);

REGISTER_OP("WorkbenchResourceRowsApplyGradientDescent")
    .Input("table: resource") WORKBENCH_ROW_UPDATE_INPUTS.SetIsStateful()
    .SetShapeFn(UpdateShape);

REGISTER_OP("WorkbenchRowsApplyAdagrad")
    .Input("table: Ref(float)")
    .Input("accumulator: Ref(float)") WORKBENCH_ROW_UPDATE_INPUTS.SetShapeFn(UpdateShape);

REGISTER_OP("WorkbenchResourceRowsApplyAdagrad")
    .Input("table: resource")
    .Input("accumulator: resource") WORKBENCH_ROW_UPDATE_INPUTS.SetIsStateful()
    .SetShapeFn(UpdateShape);

#undef WORKBENCH_ROW_UPDATE_INPUTS

}  // namespace workbench
