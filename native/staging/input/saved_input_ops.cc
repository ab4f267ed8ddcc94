#include "staging/buffer_op.h"
#include "tensorflow/core/framework/common_shape_fns.h"

namespace workbench {
namespace {

using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::NoOutputs;
using tensorflow::shape_inference::ScalarShape;

absl::Status UnknownVector(InferenceContext* c) {
  c->set_output(0, c->Vector(InferenceContext::kUnknownDim));
  return absl::OkStatus();
}

}  // namespace

REGISTER_OP("WorkbenchInputSave")
    .Input("handle: T")
    .Attr("T: {resource, string} = DT_RESOURCE")
    .Attr("saves: string")
    .Attr("stages: list(string) = []")
    .SetIsStateful()
    .SetShapeFn(NoOutputs)
    .Doc(R"doc(
Runs before an op that saves the state of an iterator or a reader. FAILED_PRECONDITION where a stage of
the process that is not one of `stages` has read ahead of it.

handle: as in WorkbenchInputName.
saves: name of that op, for messages.
stages: names of the stages whose items are saved with the state.
)doc");

WORKBENCH_BUFFER_OP("WorkbenchBufferHold")
    .Attr("timeout_millis: int >= 1 = 300000")
    .SetShapeFn(NoOutputs)
    .Doc(R"doc(
Waits until no producer of the stage reads its input, and holds them there until the step ends.

timeout_millis: milliseconds to wait; then the op fails with DEADLINE_EXCEEDED.
)doc");

WORKBENCH_BUFFER_OP("WorkbenchBufferHeld")
    .Output("held: variant")
    .Attr("dtypes: list(type) >= 0")
    .Attr("host_dtypes: list(type) >= 0 = []")
    .SetShapeFn(ScalarShape)
    .Doc(R"doc(
Returns what the stage has read and no step has taken.

held: scalar, copies in the host's memory where the buffer is on a GPU.
)doc");

WORKBENCH_BUFFER_OP("WorkbenchBufferPreload")
    .Input("state: variant")
    .Attr("dtypes: list(type) >= 0")
    .Attr("host_dtypes: list(type) >= 0 = []")
    .SetShapeFn(NoOutputs)
    .Doc(R"doc(
Puts the items that a saved state has of this stage into its buffer; takes get them first.

state: of WorkbenchInputState.
)doc");

REGISTER_OP("WorkbenchInputState")
    .Input("serialized: variant")
    .Input("held: N * variant")
    .Output("state: variant")
    .Attr("N: int >= 0")
    .SetShapeFn(UnknownVector)
    .Doc(R"doc(
The state of an iterator with the items that stages have read ahead of it.

serialized: of SerializeIterator.
held: of WorkbenchBufferHeld.
state: [k], `serialized`, and one element for each stage that has items. Without one it is the state that
  TensorFlow itself saves.
)doc");

REGISTER_OP("WorkbenchInputStateOnly")
    .Input("state: variant")
    .Output("serialized: variant")
    .Attr("stages: list(string) = []")
    .SetShapeFn(UnknownVector)
    .Doc(R"doc(
The state of an iterator without the items of stages. FAILED_PRECONDITION where it has items of a stage
that is not one of `stages`.

state: of WorkbenchInputState, or of SerializeIterator.
stages: names of the stages that read the iterator in this graph.
serialized: for DeserializeIterator.
)doc");

REGISTER_OP("WorkbenchSourceRead")
    .Attr("stage: string")
    .Attr("container: string = ''")
    .Attr("shared_name: string")
    .Attr("source: string")
    .SetIsStateful()
    .SetShapeFn(NoOutputs)
    .Doc(R"doc(
Runs before an op that a stage reads its items from. A step that runs it and takes from the stage fails
with FAILED_PRECONDITION: the item that the op gives is not the one that is taken.

container, shared_name: of the stage's buffer.
source: name of the op.
)doc");

}  // namespace workbench
