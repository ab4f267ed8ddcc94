#include <vector>

#include "absl/strings/str_cat.h"
#include "staging/buffer_op.h"
#include "tensorflow/core/framework/common_shape_fns.h"

namespace workbench {
namespace {

using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

// An owner and two scalars.
absl::Status EndShape(InferenceContext* c) {
  TF_RETURN_IF_ERROR(OwnerIn(c));
  ShapeHandle scalar;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 0, &scalar));
  return c->WithRank(c->input(2), 0, &scalar);
}

absl::Status DrainShape(InferenceContext* c) {
  ShapeHandle scalar;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 0, &scalar));
  c->set_output(0, c->Matrix(InferenceContext::kUnknownDim, 6));
  return absl::OkStatus();
}

absl::Status TakeShape(InferenceContext* c) {
  tensorflow::DataTypeVector dtypes;
  TF_RETURN_IF_ERROR(c->GetAttr("dtypes", &dtypes));
  const int count = static_cast<int>(dtypes.size());
  TF_RETURN_IF_ERROR(ListShape(c, "shapes", 0, count));
  return ListShape(c, "host_shapes", count, c->num_outputs() - count);
}

}  // namespace

absl::Status OwnerIn(InferenceContext* c) {
  ShapeHandle owner;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &owner));
  tensorflow::shape_inference::DimensionHandle two;
  return c->WithValue(c->Dim(owner, 0), 2, &two);
}

absl::Status ListShape(InferenceContext* c, const char* attr, int first, int count) {
  std::vector<tensorflow::PartialTensorShape> shapes;
  TF_RETURN_IF_ERROR(c->GetAttr(attr, &shapes));
  const bool known = !shapes.empty();
  if (known && static_cast<int>(shapes.size()) != count) {
    return absl::InvalidArgumentError(absl::StrCat(attr, " has ", shapes.size(),
                                                   " entries; expected none, or one for each of ",
                                                   count, " tensors of an item"));
  }
  for (int i = 0; i < count; ++i) {
    ShapeHandle shape = c->UnknownShape();
    if (known) TF_RETURN_IF_ERROR(c->MakeShapeFromPartialTensorShape(shapes[i], &shape));
    c->set_output(first + i, shape);
  }
  return absl::OkStatus();
}

WORKBENCH_BUFFER_OP("WorkbenchBufferPut")
    .Input("owner: int64")
    .Input("record: dtypes")
    .Input("host_record: host_dtypes")
    .Attr("dtypes: list(type) >= 0")
    .Attr("host_dtypes: list(type) >= 0 = []")
    .Attr("timeout_millis: int >= 1 = 300000")
    .Attr("stream_id: int >= 0 = 0")
    .Attr("reserve: bool = false")
    .SetShapeFn(OwnerIn)
    .Doc(R"doc(
Puts one item into a stage's buffer; waits for room without holding a thread.

Errors are FAILED_PRECONDITION before any resume; CANCELLED after cancel or close, for a token that is
not the owner's, and with its step; INVALID_ARGUMENT for another capacity or other dtypes than the
buffer's.

owner: [2], the owner's token and the number of the producing thread.
record: the item's first tensors, in the memory of the buffer's device.
host_record: its other tensors, in the host's memory on every device.
capacity: most items the buffer holds; the first op that touches the buffer fixes it.
stage: the stage's name in errors; empty means shared_name.
container: container of the buffer; empty means the default one.
shared_name: name of the buffer, by which its ops find each other; must not be empty.
timeout_millis: milliseconds to wait for room; then the op fails with DEADLINE_EXCEEDED, but the
  item stays queued, and a flush of the same thread waits for it.
stream_id: logical device that the staged side runs on, with streams of its own; 0 shares the main
  one. A graph pass places it.
reserve: the op ends only when there is room for one item more than its own, or a take has come for it:
  a single producer then has at most `capacity` items on their way, the one it works on among them.
)doc");

WORKBENCH_BUFFER_OP("WorkbenchBufferFlush")
    .Input("owner: int64")
    .Attr("timeout_millis: int >= 1 = 300000")
    .SetShapeFn(OwnerIn)
    .Doc(R"doc(
Waits until the buffer has admitted the items that timed-out puts of this thread left queued.

Errors as of WorkbenchBufferPut.

owner: [2], the owner's token and the number of the producing thread.
timeout_millis: milliseconds to wait; then the op fails with DEADLINE_EXCEEDED.
)doc");

WORKBENCH_BUFFER_OP("WorkbenchBufferTake")
    .Output("record: dtypes")
    .Output("host_record: host_dtypes")
    .Attr("dtypes: list(type) >= 0")
    .Attr("host_dtypes: list(type) >= 0 = []")
    .Attr("shapes: list(shape) >= 0 = []")
    .Attr("host_shapes: list(shape) >= 0 = []")
    .Attr("start_timeout_millis: int >= 1 = 8000")
    .Attr("num_clients: int >= 1 = 1")
    .Attr("ahead: bool = false")
    .Attr("returns: bool = false")
    .SetShapeFn(TakeShape)
    .Doc(R"doc(
Takes the oldest item out of a stage's buffer; waits for one without holding a thread.

Errors are OUT_OF_RANGE once the epoch has ended and all items were taken; the code of a cancel, or
  CANCELLED, after it; FAILED_PRECONDITION without a prefetch runner, or if the producers could not
  begin; CANCELLED with its step; INVALID_ARGUMENT for another capacity or other dtypes than the
  buffer's.

record: the item's first tensors, not copied, in the memory of the buffer's device.
host_record: its other tensors, not copied, in the host's memory on every device.
shapes: static shapes of `record`; empty when unknown.
host_shapes: static shapes of `host_record`; empty when unknown.
start_timeout_millis: milliseconds to wait for the buffer's first owner; then the stage's prefetch
  runner is missing, which is FAILED_PRECONDITION.
num_clients: accepted for compatibility; any number of takes may wait.
ahead: whether the take is on the staged side of another stage; the graph pass sets it.
returns: whether the step may return something of the item, by WorkbenchBufferReturn.
)doc");

WORKBENCH_BUFFER_OP("WorkbenchBufferResume")
    .Input("owner: int64")
    .SetShapeFn(OwnerIn)
    .Doc(R"doc(
Makes this token the buffer's owner and opens the buffer; drops everything of an earlier owner.

owner: [2], the owner's token, and how many producers will rest; 0 or less: they never do.
)doc");

WORKBENCH_BUFFER_OP("WorkbenchBufferRest")
    .Input("owner: int64")
    .Input("reason: int32")
    .Input("message: string")
    .SetShapeFn(EndShape)
    .Doc(R"doc(
Declares that a producer has nothing to put for now; ends when the producer is to try again.

Errors as of WorkbenchBufferPut, and INVALID_ARGUMENT for another reason than 0 to 4.

owner: [2], the owner's token and the number of the producing thread.
reason: scalar. 0: it may try as soon as a take waits. 1: its input has ended; waiting takes get
  OUT_OF_RANGE, and a later take lets it try again. 2: only a restart lets it try again. 3: it needs
  a resource that is not initialized yet. 4: its input is a stage whose restart was cut short; takes
  fail with FAILED_PRECONDITION, and only a restart lets it try again.
message: scalar; for reason 3, the resource.
)doc");

WORKBENCH_BUFFER_OP("WorkbenchBufferCancel")
    .Input("owner: int64")
    .Input("code: int32")
    .Input("message: string")
    .SetShapeFn(EndShape)
    .Doc(R"doc(
Ends the owner's stage at once; takes get the items in the buffer, then this code and message.
Nothing happens if the token is not the owner's.

owner: [2], the owner's token; the second number is ignored.
code: scalar, an error code from 0 to 16, else INVALID_ARGUMENT; 0 or 1 is a plain stop: CANCELLED.
message: scalar.
)doc");

WORKBENCH_BUFFER_OP("WorkbenchBufferClose")
    .Input("owner: int64")
    .SetShapeFn(OwnerIn)
    .Doc(R"doc(
Ends the owner's epoch: takes get every item already produced, then OUT_OF_RANGE.
Nothing happens if the token is not the owner's.

owner: [2], the owner's token; the second number is ignored.
)doc");

WORKBENCH_BUFFER_OP("WorkbenchBufferSize")
    .Output("size: int32")
    .SetShapeFn(tensorflow::shape_inference::ScalarShape)
    .Doc(R"doc(
Counts the items in the buffer now.

size: scalar; without the items of puts that wait.
)doc");

WORKBENCH_BUFFER_OP("WorkbenchBufferDrain")
    .Input("enable: bool")
    .Output("events: int64")
    .SetShapeFn(DrainShape)
    .Doc(R"doc(
Returns the buffer's events since the last drain, and switches recording on or off.

enable: scalar, whether to record from now on.
events: [events, 6], rows of [kind, item, thread or step id, start_ns, end_ns, size after]; kind 0
  is a put, 1 a take; a first row of kind 2 counts, in `item`, older events that were dropped. Times
  are nanoseconds of the wall clock.
)doc");

}  // namespace workbench
