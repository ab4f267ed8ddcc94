// The ops of a grouped lookup in EmbeddingVariables. Its gradient is WorkbenchGroupedLookUpGrad,
// whose rows then are keys.

#include "lookup/grouped/grouped_ops.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace workbench {
namespace {

using tensorflow::shape_inference::InferenceContext;

absl::Status EmbeddingGroupedShape(InferenceContext* c) {
  TF_RETURN_IF_ERROR(GroupedShape(c));
  int vectors, features;
  TF_RETURN_IF_ERROR(c->GetAttr("M", &vectors));
  TF_RETURN_IF_ERROR(c->GetAttr("F", &features));
  for (int i = vectors; i < c->num_outputs(); ++i) {
    c->set_output(i, i < vectors + features ? c->Vector(InferenceContext::kUnknownDim)
                                            : c->Scalar());
  }
  return absl::OkStatus();
}

}  // namespace

WORKBENCH_GROUPED_IDS(REGISTER_OP("WorkbenchEmbeddingGroupedLookUp").Input("tables: N * resource"))
    .Input("default_rows: N * float")
    .Input("step: S * int64")
    .Output("vectors: M * T")
    .Output("found_rows: F * int64")
    .Output("generations: N * int64")
    .Attr("S: int >= 0 = 0")
    .Attr("read_only: bool = false")
    .SetIsStateful()
    .SetShapeFn(EmbeddingGroupedShape)
    .Doc(R"doc(
WorkbenchGroupedLookUp of EmbeddingVariables without filters, whose rows are combined where they lie;
a key without a row gets row `key mod n` of its table's n default rows. Keys are ids at or above 0,
neither weighted nor shortened, and T is float.

tables: handles of WorkbenchEmbeddingVariable.
default_rows: of each table [n, dim], n at least 1.
step: at most one scalar, the number of this step, which tables with keep_versions remember.
read_only: make no rows, and do not remember the step.
found_rows: of each feature which rows its keys have, for WorkbenchEmbeddingGroupedApply.
generations: of each table for how long that is so.
)doc");

WORKBENCH_GROUPED_IDS(REGISTER_OP("WorkbenchEmbeddingGroupedApply")
                          .Input("tables: N * resource")
                          .Input("scalars: K * float")
                          .Input("gradients: M * T"))
    .Input("found_rows: F * int64")
    .Input("generations: N * int64")
    .Attr("rule: {'gradient_descent', 'adagrad', 'adam', 'ftrl'}")
    .Attr("K: int >= 1")
    .Attr("columns: list(int)")
    .Attr("slot_names: list(string) >= 0 = []")
    .Attr("slot_initials: list(float) >= 0 = []")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::NoOutputs)
    .Doc(R"doc(
The gradient of a grouped lookup in EmbeddingVariables and an optimizer's update in one: each row is
changed where the lookup found it, as soon as its gradients are summed, in the order of their ids.

Keys are searched again only in a table whose rows moved since: one that was cleared, restored, or
from which old rows were taken. Keys without a row are skipped.

tables: handles of WorkbenchEmbeddingVariable, each of another table.
scalars: the numbers of WorkbenchEmbeddingApplyGradientDescent, …Adagrad, …Adam or …Ftrl.
gradients: of the outputs of the lookup.
ids, rows, dense_shapes, weights: as inputs of the lookup; those of some of its features will do.
found_rows, generations: what the lookup gave of these features and tables.
columns: where in a concatenated gradient each feature begins.
slot_names: the optimizer's, of one table after the other.
slot_initials: with which value each slot begins, for rows that have none yet.
)doc");

}  // namespace workbench
