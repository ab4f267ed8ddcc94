// The ops that stand between a node of the user's graph and the node that a plan puts in its place,
// until it is known what a run feeds and fetches. make_choices_pass.cc takes them out again.

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace workbench {
namespace {

using tensorflow::shape_inference::InferenceContext;

// Both branches give the same; the user's has the shapes that TensorFlow knows.
absl::Status StockShapes(InferenceContext* c) {
  for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, c->input(i));
  return absl::OkStatus();
}

}  // namespace

// Stateful, so that TensorFlow neither joins two of them nor computes one ahead.
REGISTER_OP("WorkbenchChoice")
    .Input("stock: T")
    .Input("rewritten: T")
    .Output("output: T")
    .Attr("T: list(type) >= 1")
    .SetIsStateful()
    .SetShapeFn(StockShapes)
    .Doc(R"doc(
Gives what one of two nodes gives. Each run has its inputs connected directly, so that none executes.

stock: what the user's node gives.
rewritten: what the node gives that a plan puts in its place.
output: one of both.
)doc");

REGISTER_OP("WorkbenchBranch")
    .Input("input: T")
    .Output("output: T")
    .Attr("T: list(type) >= 1")
    .SetIsStateful()
    .SetShapeFn(StockShapes)
    .Doc(R"doc(
The end of a branch of a choice. What TensorFlow's optimizer takes out of the branch may leave waits
here, of which it is known so to which branch they belong.

input: what the branch gives.
output: the same.
)doc");

REGISTER_OP("WorkbenchChoiceRef")
    .Input("stock: Ref(T)")
    .Input("rewritten: Ref(T)")
    .Output("output: Ref(T)")
    .Attr("T: type")
    .SetIsStateful()
    .SetShapeFn(StockShapes)
    .Doc(R"doc(
WorkbenchChoice of a reference to a variable.

stock: what the user's node gives.
rewritten: what the node gives that a plan puts in its place.
output: one of both.
)doc");

REGISTER_OP("WorkbenchChoiceWait")
    .Attr("rewritten: bool")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext*) { return absl::OkStatus(); })
    .Doc(R"doc(
Waits for what a node waits for in one branch. Each run has its control inputs go to the nodes behind
it, or goes without them, so that none executes.

rewritten: whether that is the branch of the plan.
)doc");

REGISTER_OP("WorkbenchChoiceSource")
    .Input("input: T")
    .Attr("T: type")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext*) { return absl::OkStatus(); })
    .Doc(R"doc(
Keeps a tensor in the runs whose choices wait for it. An op of the plan reads it there.

input: what the op reads.
)doc");

REGISTER_OP("WorkbenchChoiceInput")
    .Output("output: T")
    .Attr("T: type")
    .Attr("source: string")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::UnknownShape)
    .Doc(R"doc(
Stands for what an op of the plan reads. Each run has the op read the tensor itself.

source: the name of the WorkbenchChoiceSource of that tensor.
output: the tensor.
)doc");

}  // namespace workbench
