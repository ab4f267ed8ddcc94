// Lines of text as columns.

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace workbench {
namespace {

using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

absl::Status ColumnShapes(InferenceContext* c) {
  for (int i = 1; i < c->num_inputs(); ++i) {
    ShapeHandle one;
    TF_RETURN_IF_ERROR(c->WithRankAtMost(c->input(i), 1, &one));
    if (c->RankKnown(one) && c->Rank(one) == 1 && c->ValueKnown(c->Dim(one, 0)) &&
        c->Value(c->Dim(one, 0)) > 1) {
      return absl::InvalidArgumentError("Shape of a default must be a length-0 or length-1 vector");
    }
  }
  for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, c->input(0));
  return absl::OkStatus();
}

}  // namespace
}  // namespace workbench

REGISTER_OP("WorkbenchDecodeCsv")
    .Input("records: string")
    .Input("record_defaults: OUT_TYPE")
    .Output("output: OUT_TYPE")
    .Attr("OUT_TYPE: list({float, double, int32, int64, string}) >= 1")
    .Attr("field_delim: string = ','")
    .Attr("use_quote_delim: bool = true")
    .Attr("na_value: string = ''")
    .SetShapeFn(workbench::ColumnShapes)
    .Doc(R"doc(
What DecodeCSV gives of all columns, on as many threads as the records are worth.

Errors are its errors: that of the first wrong record.

records: lines, of any shape.
record_defaults: of each column what an empty field is, a scalar or [1]; [0] where none may be
  empty.
output: of each column, the shape of `records`.
na_value: what counts as an empty field, too.
)doc");
