#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace workbench {

REGISTER_OP("WorkbenchHandOn")
    .Input("input: T")
    .Output("output: T")
    .Attr("T: type")
    .SetShapeFn([](tensorflow::shape_inference::InferenceContext* c) {
      c->set_output(0, c->input(0));
      return absl::OkStatus();
    })
    .Doc(R"doc(
Gives a tensor on that is not the first one of its op, as Identity does.

TensorFlow's optimizer takes an Identity out. Some of its rules are right for first outputs only: of
equal inputs of a Pack it takes the node, and forgets which output they are. This op it leaves there.

input: a tensor.
output: the same.
)doc");

}  // namespace workbench
