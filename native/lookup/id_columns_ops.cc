// Columns of ids, as Keras's embeddings look them up.

#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace workbench {
namespace {

using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

absl::Status ColumnShapes(InferenceContext* c) {
  std::vector<int64_t> columns, widths;
  TF_RETURN_IF_ERROR(c->GetAttr("columns", &columns));
  TF_RETURN_IF_ERROR(c->GetAttr("widths", &widths));
  const size_t count = c->num_inputs();
  if (columns.size() != count || widths.size() != count) {
    return absl::InvalidArgumentError(absl::StrCat("columns and widths have ", columns.size(),
                                                   " and ", widths.size(), " values; expected ",
                                                   count));
  }
  for (size_t i = 0; i < count; ++i) {
    if (columns[i] < 0) {
      c->set_output(i, c->input(i));
      continue;
    }
    ShapeHandle matrix;
    TF_RETURN_IF_ERROR(c->WithRank(c->input(i), 2, &matrix));
    const auto rows = c->Dim(matrix, 0);
    c->set_output(i, widths[i] > 0 ? c->Matrix(rows, widths[i]) : c->Vector(rows));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace workbench

REGISTER_OP("WorkbenchIdColumns")
    .Input("ids: N * T")
    .Output("counted: N * Tid")
    .Attr("T: {int32, int64, float}")
    .Attr("Tid: {int32, int64}")
    .Attr("N: int >= 1")
    .Attr("columns: list(int)")
    .Attr("widths: list(int)")
    .Attr("table_rows: list(int)")
    .SetShapeFn(workbench::ColumnShapes)
    .Doc(R"doc(
Ids of several features, in which an id below 0 counts from the end of its table: what
tf.where(ids < 0, ids + table_rows, ids) gives of columns of them, cast to Tid.

ids: of each feature a matrix, or a tensor of any shape.
counted: of each feature.
columns: of each feature the first column of its matrix; -1 for all of its tensor.
widths: of each feature how many columns; 0 for one alone, as a vector.
table_rows: of each feature.
)doc");
