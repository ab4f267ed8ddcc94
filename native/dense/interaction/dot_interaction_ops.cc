// Dot products of pairs of an example's vectors.

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace workbench {
namespace {

using tensorflow::shape_inference::DimensionHandle;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

// Of x: [examples, vectors, dim], with as many vectors as the op is made for.
absl::Status ShapeOfX(InferenceContext* c, int input, ShapeHandle* x) {
  int64_t vectors;
  TF_RETURN_IF_ERROR(c->GetAttr("vectors", &vectors));
  TF_RETURN_IF_ERROR(c->WithRank(c->input(input), 3, x));
  DimensionHandle known;
  TF_RETURN_IF_ERROR(c->WithValue(c->Dim(*x, 1), vectors, &known));
  return c->ReplaceDim(*x, 1, known, x);
}

}  // namespace

REGISTER_OP("WorkbenchDotInteraction")
    .Input("x: float")
    .Output("dots: float")
    .Attr("vectors: int >= 1")
    .Attr("pairs: list(int)")
    .SetShapeFn([](InferenceContext* c) -> absl::Status {
      ShapeHandle x;
      TF_RETURN_IF_ERROR(ShapeOfX(c, 0, &x));
      std::vector<int64_t> pairs;
      TF_RETURN_IF_ERROR(c->GetAttr("pairs", &pairs));
      c->set_output(0, c->Matrix(c->Dim(x, 0), static_cast<int64_t>(pairs.size())));
      return absl::OkStatus();
    })
    .Doc(R"doc(
Dot products of pairs of each example's vectors: what some of the numbers of
tf.matmul(x, x, transpose_b=True) are, which is never made as a whole.

x: [examples, vectors, dim].
dots: [examples, pairs].
vectors: of an example.
pairs: of each, first * vectors + second.
)doc");

REGISTER_OP("WorkbenchDotInteractionGrad")
    .Input("gradient: float")
    .Input("x: float")
    .Output("x_gradient: float")
    .Attr("vectors: int >= 1")
    .Attr("pairs: list(int)")
    .SetShapeFn([](InferenceContext* c) -> absl::Status {
      ShapeHandle x;
      TF_RETURN_IF_ERROR(ShapeOfX(c, 1, &x));
      c->set_output(0, x);
      return absl::OkStatus();
    })
    .Doc(R"doc(
The gradient of WorkbenchDotInteraction.

gradient: of the dots, [examples, pairs].
x: [examples, vectors, dim], as it was.
x_gradient: as x.
)doc");

}  // namespace workbench
