// Batch normalization of a float32 matrix by the moments of its own columns.

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace workbench {
namespace {

using tensorflow::shape_inference::DimensionHandle;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

// The shape of the matrix, and that of its columns, which the vectors behind it have.
absl::Status Shapes(InferenceContext* c, int matrices, ShapeHandle* matrix, ShapeHandle* vector) {
  TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, matrix));
  for (int i = 1; i < matrices; ++i) TF_RETURN_IF_ERROR(c->Merge(*matrix, c->input(i), matrix));
  DimensionHandle columns = c->Dim(*matrix, 1);
  for (int i = matrices; i < c->num_inputs(); ++i) {
    ShapeHandle each;
    TF_RETURN_IF_ERROR(c->WithRank(c->input(i), 1, &each));
    TF_RETURN_IF_ERROR(c->Merge(columns, c->Dim(each, 0), &columns));
  }
  *vector = c->Vector(columns);
  return c->ReplaceDim(*matrix, 1, columns, matrix);
}

// Of an op whose first inputs are matrices and the others vectors; so are its outputs, the first a matrix.
template <int kMatrices>
absl::Status OutputShapes(InferenceContext* c) {
  ShapeHandle matrix, vector;
  TF_RETURN_IF_ERROR(Shapes(c, kMatrices, &matrix, &vector));
  c->set_output(0, matrix);
  c->set_output(1, vector);
  c->set_output(2, vector);
  return absl::OkStatus();
}

absl::Status GradientShapes(InferenceContext* c) {
  TF_RETURN_IF_ERROR(OutputShapes<2>(c));
  bool of_relu = false;
  TF_RETURN_IF_ERROR(c->GetAttr("of_relu", &of_relu));
  c->set_output(3, of_relu ? c->output(2) : c->Vector(0));
  return absl::OkStatus();
}

}  // namespace

REGISTER_OP("WorkbenchBatchNorm")
    .Input("x: float")
    .Input("gamma: float")
    .Input("beta: float")
    .Output("y: float")
    .Output("mean: float")
    .Output("variance: float")
    .Attr("epsilon: float")
    .SetShapeFn(OutputShapes<1>)
    .Doc(R"doc(
Normalizes each column of a matrix by its own mean and variance: what tf.nn.moments over the rows and
tf.nn.batch_normalization give, but for the order in which rows are summed.

x: [rows, columns].
gamma: [columns] what a column is multiplied with.
beta: [columns] what is added to it.
y: (x - mean) gamma / sqrt(variance + epsilon) + beta, as x.
mean: [columns] NaN without rows.
variance: [columns] mean of squares of what x is off its mean.
)doc");

REGISTER_OP("WorkbenchBatchNormGrad")
    .Input("gradient: float")
    .Input("x: float")
    .Input("gamma: float")
    .Input("mean: float")
    .Input("variance: float")
    .Output("x_gradient: float")
    .Output("gamma_gradient: float")
    .Output("beta_gradient: float")
    .Output("bias_gradient: float")
    .Attr("epsilon: float")
    .Attr("of_relu: bool = false")
    .SetShapeFn(GradientShapes)
    .Doc(R"doc(
The gradients of WorkbenchBatchNorm, whose mean and variance change with x.

gradient: of y, as x.
x: [rows, columns], as it was normalized.
gamma: [columns] as it was.
mean: [columns] as WorkbenchBatchNorm gave it.
variance: [columns] likewise.
of_relu: whether x is the result of a ReLU, of whose input the gradient is wanted.
x_gradient: of x, or of that input: multiplied by x > 0, as ReluGrad does, so that NaN stays.
bias_gradient: [columns] with of_relu, the sums of the columns of x_gradient, which is the gradient of
  a bias that was added to that input; else [0].
)doc");

}  // namespace workbench
