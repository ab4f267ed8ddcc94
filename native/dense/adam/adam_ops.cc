// Adam's update of a whole float32 variable.

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace workbench {
namespace {

using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

constexpr int kAdamScalars = 6, kFirstScalar = 3, kGradient = kFirstScalar + kAdamScalars;

absl::Status RequireScalars(InferenceContext* c) {
  ShapeHandle scalar;
  for (int i = 0; i < kAdamScalars; ++i) {
    TF_RETURN_IF_ERROR(c->WithRank(c->input(kFirstScalar + i), 0, &scalar));
  }
  return absl::OkStatus();
}

absl::Status AdamShape(InferenceContext* c) {
  ShapeHandle shape = c->input(kGradient);
  for (int i = 0; i < kFirstScalar; ++i) TF_RETURN_IF_ERROR(c->Merge(shape, c->input(i), &shape));
  c->set_output(0, shape);
  return RequireScalars(c);
}

}  // namespace

#define WORKBENCH_ADAM_INPUTS            \
  .Input("beta1_power: float")           \
      .Input("beta2_power: float")       \
      .Input("lr: float")                \
      .Input("beta1: float")             \
      .Input("beta2: float")             \
      .Input("epsilon: float")           \
      .Input("grad: float")              \
      .Attr("use_locking: bool = false") \
      .Attr("use_nesterov: bool = false")

REGISTER_OP("WorkbenchApplyAdam")
    .Input("var: Ref(float)")
    .Input("m: Ref(float)")
    .Input("v: Ref(float)") WORKBENCH_ADAM_INPUTS.Output("out: Ref(float)")
    .SetShapeFn(AdamShape)
    .Doc(R"doc(
What ApplyAdam does, shared by whatever cores have nothing to do.

var, m, v: the variable and its moments, of one shape.
grad: of that shape.
out: var.
)doc");

REGISTER_OP("WorkbenchResourceApplyAdam")
    .Input("var: resource")
    .Input("m: resource")
    .Input("v: resource") WORKBENCH_ADAM_INPUTS.SetShapeFn(RequireScalars)
    .SetIsStateful()
    .Doc(R"doc(
WorkbenchApplyAdam of resource variables.

var, m, v: handles of variables.
)doc");

#undef WORKBENCH_ADAM_INPUTS

}  // namespace workbench
