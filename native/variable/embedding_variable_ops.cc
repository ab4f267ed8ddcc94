// The ops of an EmbeddingVariable: a table of rows by key in a device's resource manager.

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace workbench {
namespace {

using tensorflow::shape_inference::DimensionHandle;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

constexpr int64_t kUnknown = InferenceContext::kUnknownDim;

absl::Status HandleIn(InferenceContext* c) {
  ShapeHandle scalar;
  return c->WithRank(c->input(0), 0, &scalar);
}

// Gradients in loops and branches ask what the handle's variable looks like.
absl::Status VariableShape(InferenceContext* c) {
  int64_t dim;
  TF_RETURN_IF_ERROR(c->GetAttr("dim", &dim));
  c->set_output(0, c->Scalar());
  c->set_output_handle_shapes_and_types(
      0, {{c->Matrix(kUnknown, dim), tensorflow::DT_FLOAT}});
  return absl::OkStatus();
}

// Inputs: handle, keys of any shape, default rows [rows, dim], perhaps counts as keys, step.
absl::Status GatherShape(InferenceContext* c) {
  TF_RETURN_IF_ERROR(HandleIn(c));
  ShapeHandle defaults, rows;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(2), 2, &defaults));
  TF_RETURN_IF_ERROR(c->Concatenate(c->input(1), c->Vector(c->Dim(defaults, 1)), &rows));
  int counts;
  TF_RETURN_IF_ERROR(c->GetAttr("num_counts", &counts));
  ShapeHandle unused;
  if (counts > 0) TF_RETURN_IF_ERROR(c->Merge(c->input(1), c->input(3), &unused));
  if (3 + counts < c->num_inputs()) {
    TF_RETURN_IF_ERROR(c->WithRank(c->input(3 + counts), 0, &unused));
  }
  c->set_output(0, rows);
  return absl::OkStatus();
}

// Inputs: handle, scalars, grads [keys, dim], keys.
absl::Status ApplyShape(InferenceContext* c) {
  TF_RETURN_IF_ERROR(HandleIn(c));
  const int grads_at = c->num_inputs() - 2;
  ShapeHandle unused, grads, keys;
  for (int i = 1; i < grads_at; ++i) TF_RETURN_IF_ERROR(c->WithRank(c->input(i), 0, &unused));
  TF_RETURN_IF_ERROR(c->WithRank(c->input(grads_at), 2, &grads));
  TF_RETURN_IF_ERROR(c->WithRank(c->input(grads_at + 1), 1, &keys));
  DimensionHandle count;
  return c->Merge(c->Dim(grads, 0), c->Dim(keys, 0), &count);
}

absl::Status SlotsIn(InferenceContext* c, int* slots) {
  std::vector<std::string> names;
  std::vector<float> initials;
  TF_RETURN_IF_ERROR(c->GetAttr("num_slots", slots));
  TF_RETURN_IF_ERROR(c->GetAttr("slot_names", &names));
  TF_RETURN_IF_ERROR(c->GetAttr("slot_initials", &initials));
  if (static_cast<int>(names.size()) == *slots && static_cast<int>(initials.size()) == *slots) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("slot_names has ", names.size(), " and slot_initials ", initials.size(),
                   " entries; expected num_slots = ", *slots));
}

absl::Status ExportShape(InferenceContext* c) {
  TF_RETURN_IF_ERROR(HandleIn(c));
  int slots;
  TF_RETURN_IF_ERROR(SlotsIn(c, &slots));
  int64_t dim;
  TF_RETURN_IF_ERROR(c->GetAttr("dim", &dim));
  for (int i = 0; i < 6; ++i) c->set_output(i, c->Vector(kUnknown));
  c->set_output(1, c->Matrix(kUnknown, dim));
  c->set_output(5, c->UnknownShape());
  for (int i = 0; i < slots; ++i) c->set_output(6 + i, c->Matrix(kUnknown, dim));
  return absl::OkStatus();
}

absl::Status ImportShape(InferenceContext* c) {
  TF_RETURN_IF_ERROR(HandleIn(c));
  int slots;
  return SlotsIn(c, &slots);
}

}  // namespace

REGISTER_OP("WorkbenchEmbeddingVariable")
    .Output("handle: resource")
    .Attr("container: string = ''")
    .Attr("shared_name: string")
    .Attr("dim: int >= 1")
    .Attr("filter_freq: int >= 0 = 0")
    .Attr("no_permission: float = 0")
    .Attr("keep_versions: bool = false")
    .Attr("most_waiting: int >= 1 = 16777216")
    .Attr("bloom_counters: int >= 0 = 0")
    .Attr("bloom_hashes: int >= 0 = 0")
    .Attr("bloom_bytes: int >= 1 = 1")
    .SetIsStateful()
    .SetShapeFn(VariableShape)
    .Doc(R"doc(
Finds an embedding variable's table by name, or creates an empty one.

Other options than those of the table that was found are INVALID_ARGUMENT.

handle: scalar handle of the table.
container: container of the table; empty means the default one.
shared_name: name of the table.
dim: values of a row.
filter_freq: a key gets its row when it has come this often; 0: at once.
no_permission: the values of a key that has no row yet because of filter_freq.
keep_versions: remember the step in which each row, or key that waits for one, was last used.
most_waiting: most keys that wait for filter_freq; one more makes the rarer half be forgotten.
bloom_counters: above 0, a counting Bloom filter of this many counters counts the keys instead, in
  memory of a fixed size.
bloom_hashes: its counters of a key.
bloom_bytes: bytes of a counter: 1, 2, 4 or 8.
)doc");

REGISTER_OP("WorkbenchEmbeddingGather")
    .Input("handle: resource")
    .Input("keys: int64")
    .Input("default_rows: float")
    .Input("counts: num_counts * int32")
    .Input("step: num_steps * int64")
    .Output("rows: float")
    .Attr("num_counts: int >= 0 = 0")
    .Attr("num_steps: int >= 0 = 0")
    .Attr("read_only: bool = false")
    .SetIsStateful()
    .SetShapeFn(GatherShape)
    .Doc(R"doc(
Reads the rows of keys; a key without one gets row `key mod n` of the n default rows.

Errors are INVALID_ARGUMENT for shapes that do not fit, NOT_FOUND for a handle whose table is gone.

handle: of WorkbenchEmbeddingVariable.
keys: of any shape.
default_rows: [n, dim], n at least 1.
counts: at most one tensor, of keys' shape: how often each key came; without it once.
step: at most one scalar, the number of this step, which keep_versions remembers.
rows: shape of keys + [dim].
read_only: make no rows, count nothing.
)doc");

REGISTER_OP("WorkbenchEmbeddingSizes")
    .Input("handle: resource")
    .Output("sizes: int64")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      c->set_output(0, c->Vector(3));
      return HandleIn(c);
    })
    .Doc(R"doc(
Counts the rows, the keys that wait for filter_freq, and the bytes of memory.

handle: of WorkbenchEmbeddingVariable.
sizes: [3].
)doc");

REGISTER_OP("WorkbenchEmbeddingClear")
    .Input("handle: resource")
    .SetIsStateful()
    .SetShapeFn(HandleIn)
    .Doc(R"doc(
Removes all rows, and all keys that wait for one.

handle: of WorkbenchEmbeddingVariable.
)doc");

#define WORKBENCH_EMBEDDING_APPLY(name)                                                            \
  REGISTER_OP(name)                                                                                \
      .SetIsStateful()                                                                             \
      .SetShapeFn(ApplyShape)                                                                      \
      .Attr("slot_names: list(string) >= 0 = []")                                                  \
      .Attr("slot_initials: list(float) >= 0 = []")                                                \
      .Input("handle: resource")

WORKBENCH_EMBEDDING_APPLY("WorkbenchEmbeddingApplyGradientDescent")
    .Input("learning_rate: float")
    .Input("grads: float")
    .Input("keys: int64")
    .Doc(R"doc(
Sums the gradients of each key in their order, then row -= learning_rate * sum.
Keys without a row are skipped, by this op and the other optimizers.

handle: of WorkbenchEmbeddingVariable.
learning_rate: scalar, as all of an optimizer's parameters.
grads: [n, dim].
keys: [n]; a key may come several times.
slot_names: names of the optimizer's slots: rows that it keeps beside each row of the table.
slot_initials: with which value each slot begins.
)doc");

WORKBENCH_EMBEDDING_APPLY("WorkbenchEmbeddingApplyAdagrad")
    .Input("learning_rate: float")
    .Input("grads: float")
    .Input("keys: int64")
    .Doc(R"doc(
Adagrad; one slot, the sum of squared gradients. See WorkbenchEmbeddingApplyGradientDescent.
)doc");

WORKBENCH_EMBEDDING_APPLY("WorkbenchEmbeddingApplyAdam")
    .Input("beta1_power: float")
    .Input("beta2_power: float")
    .Input("learning_rate: float")
    .Input("beta1: float")
    .Input("beta2: float")
    .Input("epsilon: float")
    .Input("grads: float")
    .Input("keys: int64")
    .Doc(R"doc(
Adam, in which rows without a gradient stay as they are; two slots, the moments.
See WorkbenchEmbeddingApplyGradientDescent.

beta1_power: scalar, beta1 to the power of the step; beta2_power likewise.
)doc");

WORKBENCH_EMBEDDING_APPLY("WorkbenchEmbeddingApplyFtrl")
    .Input("learning_rate: float")
    .Input("l1: float")
    .Input("l2: float")
    .Input("l2_shrinkage: float")
    .Input("learning_rate_power: float")
    .Input("grads: float")
    .Input("keys: int64")
    .Doc(R"doc(
FTRL-proximal; two slots, the sum of squared gradients and the linear term.
See WorkbenchEmbeddingApplyGradientDescent.
)doc");

#undef WORKBENCH_EMBEDDING_APPLY

REGISTER_OP("WorkbenchEmbeddingExport")
    .Input("handle: resource")
    .Input("step: num_steps * int64")
    .Output("keys: int64")
    .Output("values: float")
    .Output("freqs: int64")
    .Output("versions: int64")
    .Output("filtered_keys: int64")
    .Output("filtered_freqs: int64")
    .Output("slots: num_slots * float")
    .Attr("dim: int >= 1")
    .Attr("num_steps: int >= 0 = 0")
    .Attr("steps_to_live: int >= 0 = 0")
    .Attr("num_slots: int >= 0 = 0")
    .Attr("slot_names: list(string) >= 0 = []")
    .Attr("slot_initials: list(float) >= 0 = []")
    .SetIsStateful()
    .SetShapeFn(ExportShape)
    .Doc(R"doc(
Copies all rows, as they were at one moment.

handle: of WorkbenchEmbeddingVariable.
step: at most one scalar, the number of this step. With steps_to_live, rows that were not used for
  more steps are removed first.
keys: [n], the keys that have a row.
values: [n, dim].
freqs: [n], how often each key came; [0] if the table does not count.
versions: [n], the step of each row's last use; [0] if the table does not keep them.
filtered_keys: [m], the keys that wait for a row.
filtered_freqs: [m], how often each of them came; [m, 2], with its version, if the table keeps
  versions; the words of the Bloom filter, if the table has one.
slots: each [n, dim].
dim: values of a row.
steps_to_live: 0: rows live for ever.
slot_names: names of the slots to copy.
slot_initials: with which value each slot begins, for rows that have none yet.
)doc");

REGISTER_OP("WorkbenchEmbeddingImport")
    .Input("handle: resource")
    .Input("keys: int64")
    .Input("values: float")
    .Input("freqs: int64")
    .Input("versions: int64")
    .Input("filtered_keys: int64")
    .Input("filtered_freqs: int64")
    .Input("slots: num_slots * float")
    .Attr("num_slots: int >= 0 = 0")
    .Attr("slot_names: list(string) >= 0 = []")
    .Attr("slot_initials: list(float) >= 0 = []")
    .Attr("part: int >= 0 = 0")
    .Attr("parts: int >= 1 = 1")
    .SetIsStateful()
    .SetShapeFn(ImportShape)
    .Doc(R"doc(
Replaces all rows by those of WorkbenchEmbeddingExport, whose outputs are the inputs.

Errors are INVALID_ARGUMENT for shapes that do not fit or for a key that comes twice.

part: with parts, imports only the keys with (key mod 1000) mod parts == part.
parts: into how many tables the keys are distributed.
)doc");

}  // namespace workbench
