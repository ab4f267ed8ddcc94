// Updates of rows of a float32 variable, each by one gradient.

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace workbench {
namespace {

using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

absl::Status UpdateShape(InferenceContext* c) {
  const int last = c->num_inputs() - 1;
  ShapeHandle grads, rows;
  TF_RETURN_IF_ERROR(c->WithRankAtLeast(c->input(last - 1), 1, &grads));
  TF_RETURN_IF_ERROR(c->WithRank(c->input(last), 1, &rows));
  tensorflow::shape_inference::DimensionHandle count;
  return c->Merge(c->Dim(grads, 0), c->Dim(rows, 0), &count);
}

}  // namespace

#define WORKBENCH_ROW_UPDATE_INPUTS                                                       \
  .Input("scalars: K * float")                                                            \
      .Input("gradients: float")                                                          \
      .Input("rows: int64")                                                               \
      .Attr("rule: {'gradient_descent', 'adagrad', 'row_wise_adagrad', 'adam', 'ftrl'}")  \
      .Attr("S: int >= 0")                                                                \
      .Attr("K: int >= 1")                                                                \
      .Attr("use_locking: bool = false")                                                  \
      .SetShapeFn(UpdateShape)

REGISTER_OP("WorkbenchRowsApply")
    .Input("table: Ref(float)")
    .Input("slots: Ref(S * float)") WORKBENCH_ROW_UPDATE_INPUTS.Doc(R"doc(
Changes rows of a table as an optimizer does. Other rows, and their slots, stay as they are.

Results of gradient_descent and of adagrad without epsilon are those of ScatterSub and
SparseApplyAdagrad. A row that is named twice is changed twice.

table: [table rows, ...].
slots: of adagrad accumulator; of adam m and v; of ftrl accum and linear, each as table; of
  row_wise_adagrad accumulator [table rows].
scalars: learning_rate; of both kinds of adagrad learning_rate, epsilon; of adam beta1_power,
  beta2_power, learning_rate, beta1, beta2, epsilon, 1 - beta1, 1 - beta2; of ftrl
  learning_rate, l1, l2, l2_shrinkage, learning_rate_power.
gradients: [m, ...] a gradient for each row.
rows: [m] rows of the table; a row outside it is INVALID_ARGUMENT.
use_locking: hold the variables' locks against other updates meanwhile.
)doc");

REGISTER_OP("WorkbenchResourceRowsApply")
    .Input("table: resource")
    .Input("slots: S * resource") WORKBENCH_ROW_UPDATE_INPUTS.SetIsStateful()
    .Doc(R"doc(
WorkbenchRowsApply of resource variables.

table: handle of a variable [table rows, ...].
slots: handles of variables.
)doc");

#undef WORKBENCH_ROW_UPDATE_INPUTS

}  // namespace workbench
