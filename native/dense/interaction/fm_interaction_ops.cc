// The second-order interaction of a factorization machine.

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace workbench {

using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

REGISTER_OP("WorkbenchFmInteraction")
    .Input("x: float")
    .Output("made: float")
    .Attr("keep_dims: bool = false")
    .SetShapeFn([](InferenceContext* c) -> absl::Status {
      ShapeHandle x;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 3, &x));
      bool keep_dims;
      TF_RETURN_IF_ERROR(c->GetAttr("keep_dims", &keep_dims));
      c->set_output(0, keep_dims ? c->MakeShape({c->Dim(x, 0), c->MakeDim(1), c->Dim(x, 2)})
                                 : c->Matrix(c->Dim(x, 0), c->Dim(x, 2)));
      return absl::OkStatus();
    })
    .Doc(R"doc(
The square of the sum of each example's vectors, less the sum of their squares: twice the sum of the
products of all pairs, as a factorization machine has it (Rendle, 2010).

x: [examples, vectors, dim].
made: [examples, dim], or with keep_dims [examples, 1, dim].
keep_dims: whether the axis of the vectors stays.
)doc");

REGISTER_OP("WorkbenchFmInteractionGrad")
    .Input("gradient: float")
    .Input("x: float")
    .Output("x_gradient: float")
    .SetShapeFn([](InferenceContext* c) -> absl::Status {
      ShapeHandle x;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 3, &x));
      c->set_output(0, x);
      return absl::OkStatus();
    })
    .Doc(R"doc(
The gradient of WorkbenchFmInteraction.

gradient: of what that one made, [examples, dim] or [examples, 1, dim].
x: [examples, vectors, dim], as it was.
x_gradient: as x.
)doc");

}  // namespace workbench
