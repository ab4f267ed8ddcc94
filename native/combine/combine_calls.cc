#include "combine/combine_calls.h"

#include "absl/strings/str_cat.h"

namespace workbench {
namespace {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;

}  // namespace

absl::Status CombinerOf(tensorflow::OpKernelConstruction* c, Combiner* combiner) {
  std::string name;
  TF_RETURN_IF_ERROR(c->GetAttr("combiner", &name));
  *combiner = name == "sum"    ? Combiner::kSum
              : name == "mean" ? Combiner::kMean
                               : Combiner::kSqrtn;
  return absl::OkStatus();
}

absl::Status WrongShape(const char* name, const Tensor& found, const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat(
      "'", name, "' has shape ", found.shape().DebugString(), "; expected ", expected));
}

absl::Status CombinedShape(OpKernelContext* c, int64_t rows, int64_t dim,
                           tensorflow::TensorShape* shape) {
  const Tensor* dense_shape;
  TF_RETURN_IF_ERROR(c->input("dense_shape", &dense_shape));
  if (dense_shape->dims() != 1 || dense_shape->NumElements() < 2) {
    return WrongShape("dense_shape", *dense_shape, "a vector of at least two elements");
  }
  const auto sizes = dense_shape->flat<int64_t>();
  for (int64_t d = 0; d + 1 < sizes.size(); ++d) {
    TF_RETURN_IF_ERROR(shape->AddDimWithStatus(sizes(d)));
  }
  if (shape->num_elements() != rows) {
    return absl::InvalidArgumentError(absl::StrCat("dense_shape has ", shape->num_elements(),
                                                   " rows, row_splits has ", rows));
  }
  return shape->AddDimWithStatus(dim);
}

absl::Status FitsRows(const Tensor& gradient, int64_t rows) {
  if (gradient.dims() >= 2) {
    int64_t count = 1;
    for (int d = 0; d + 1 < gradient.dims(); ++d) count *= gradient.dim_size(d);
    if (count == rows) return absl::OkStatus();
  }
  return WrongShape("gradient", gradient, absl::StrCat("[…, dim] with ", rows, " rows"));
}

}  // namespace workbench
