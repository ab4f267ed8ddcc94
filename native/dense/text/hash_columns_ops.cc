// The ids of columns of text.

#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace workbench {
namespace {

using tensorflow::shape_inference::DimensionHandle;
using tensorflow::shape_inference::InferenceContext;

absl::Status IdShapes(InferenceContext* c) {
  std::vector<bool> zero_last;
  TF_RETURN_IF_ERROR(c->GetAttr("zero_last", &zero_last));
  const int count = c->num_inputs();
  if (zero_last.size() != static_cast<size_t>(count)) {
    return absl::InvalidArgumentError("zero_last must have a value for each column");
  }
  for (int i = 0; i < count; ++i) {
    const DimensionHandle found = c->UnknownDim();
    c->set_output(i, c->Vector(found));
    const auto texts = c->input(i);
    c->set_output(count + i, c->Matrix(found, c->RankKnown(texts)
                                                  ? c->MakeDim(c->Rank(texts) + zero_last[i])
                                                  : c->UnknownDim()));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace workbench

REGISTER_OP("WorkbenchHashColumns")
    .Input("texts: N * string")
    .Output("ids: N * int64")
    .Output("indices: N * int64")
    .Attr("N: int >= 1")
    .Attr("buckets: list(int)")
    .Attr("zero_last: list(bool)")
    .SetShapeFn(workbench::IdShapes)
    .Doc(R"doc(
Columns of text as sparse ids: what StringToHashBucketFast gives of those that are not empty, and
where they are.

texts: of each column, of any shape.
ids: of each column [found], in the order of the texts.
indices: of each column [found, rank], or one more of 0 where zero_last.
buckets: of each column, of how many ids one is.
)doc");
