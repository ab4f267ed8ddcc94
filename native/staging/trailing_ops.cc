#include "staging/buffer_op.h"
#include "tensorflow/core/framework/common_shape_fns.h"

namespace workbench {

WORKBENCH_BUFFER_OP("WorkbenchBufferBegin")
    .Input("owner: int64")
    .SetShapeFn(OwnerIn)
    .Doc(R"doc(
Begins a run of the staged side whose updates trail: it puts an item, waits by
WorkbenchBufferAwait for what a step returns of it, and applies that. Ends when the run before has put
its item, and when all runs have ended but the last capacity - 1.

Errors as of WorkbenchBufferPut.

owner: [2], the owner's token and the number of the producing thread, whose run before has ended.
)doc");

WORKBENCH_BUFFER_OP("WorkbenchBufferAwait")
    .Input("owner: int64")
    .Output("record: T")
    .Attr("T: list(type) >= 1")
    .Attr("shapes: list(shape) >= 0 = []")
    .SetShapeFn([](tensorflow::shape_inference::InferenceContext* c) {
      TF_RETURN_IF_ERROR(OwnerIn(c));
      return ListShape(c, "shapes", 0, c->num_outputs());
    })
    .Doc(R"doc(
Waits, behind the put of a run, for what WorkbenchBufferReturn returns of its item; holds no thread.

Errors are CANCELLED where the item was dropped, or the step that took it ended and returned nothing.

owner: [2], the owner's token and the number of the producing thread.
record: what was returned.
shapes: static shapes of `record`; empty when unknown.
)doc");

WORKBENCH_BUFFER_OP("WorkbenchBufferReturn")
    .Input("record: T")
    .Attr("T: list(type) >= 1")
    .SetShapeFn(tensorflow::shape_inference::NoOutputs)
    .Doc(R"doc(
Returns tensors to the run of the staged side that put the item which this step took.

FAILED_PRECONDITION where the step took none.

record: the tensors.
)doc");

WORKBENCH_BUFFER_OP("WorkbenchBufferSettle")
    .SetShapeFn(tensorflow::shape_inference::NoOutputs)
    .Doc(R"doc(
Waits until what was returned so far has been applied: the runs that it was returned to have ended.
)doc");

}  // namespace workbench
