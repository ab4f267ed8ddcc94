#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace workbench {
namespace {

using tensorflow::shape_inference::NoOutputs;
using tensorflow::shape_inference::ScalarShape;

}  // namespace

REGISTER_OP("WorkbenchInputName")
    .Input("handle: T")
    .Output("name: string")
    .Attr("T: {resource, string} = DT_RESOURCE")
    .SetIsStateful()
    .SetShapeFn(ScalarShape)
    .Doc(R"doc(
Names an iterator or a reader, so that no other in the process has the name.

handle: scalar, a resource handle; or [2], the container and name that a reader has as a reference.
name: scalar.
)doc");

REGISTER_OP("WorkbenchInputRestart")
    .Input("handle: T")
    .Attr("T: {resource, string} = DT_RESOURCE")
    .SetIsStateful()
    .SetShapeFn(NoOutputs)
    .Doc(R"doc(
Begins every stage of the process again that reads this input. Runs before an op that initializes the
input in the same step: drops the items that were read ahead, and ends when no producer of these
stages reads any more. Takes wait until the step, or the function that initializes, has ended.

handle: as in WorkbenchInputName.
)doc");

REGISTER_OP("WorkbenchBufferWatch")
    .Input("inputs: N * string")
    .Attr("N: int >= 0")
    .Attr("capacity: int >= 1 = 1")
    .Attr("stage: string = ''")
    .Attr("container: string = ''")
    .Attr("shared_name: string")
    .Attr("timeout_millis: int >= 1 = 300000")
    .SetIsStateful()
    .SetShapeFn(NoOutputs)
    .Doc(R"doc(
Says which iterators and readers the producers of a buffer read.

inputs: scalars, their names by WorkbenchInputName.
timeout_millis: milliseconds that a WorkbenchInputRestart waits for the producers; then takes fail
  with FAILED_PRECONDITION until the next one.
)doc");

}  // namespace workbench
