// The ops that make one tensor of several, for one message between two tasks. PackTransfers puts
// them into placed graphs.

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace workbench {
namespace {

using tensorflow::shape_inference::InferenceContext;

absl::Status PackShape(InferenceContext* c) {
  c->set_output(0, c->Vector(InferenceContext::kUnknownDim));
  return absl::OkStatus();
}

}  // namespace

REGISTER_OP("WorkbenchPackTensors")
    .Input("tensors: T")
    .Attr("T: list(type) >= 1")
    .Output("packed: uint8")
    .SetShapeFn(PackShape)
    .Doc(R"doc(
Packs tensors into one. Integers take as few bytes as their range needs.

tensors: of types whose elements are bytes: no strings, resources or variants.
packed: [bytes] what WorkbenchUnpackTensors takes apart.
)doc");

REGISTER_OP("WorkbenchUnpackTensors")
    .Input("packed: uint8")
    .Attr("T: list(type) >= 1")
    .Output("tensors: T")
    .SetShapeFn(tensorflow::shape_inference::UnknownShape)
    .Doc(R"doc(
Takes tensors out of one that WorkbenchPackTensors made. What it did not make is INVALID_ARGUMENT.

packed: [bytes].
tensors: as they were packed.
)doc");

}  // namespace workbench
