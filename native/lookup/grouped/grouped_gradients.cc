#include "lookup/grouped/grouped_gradients.h"

#include "absl/strings/str_cat.h"
#include "combine/combine_calls.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace workbench::grouped {
namespace {

using tensorflow::OpInputList;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

template <typename T, typename Id>
absl::Status ReadConcatenated(const OpInputList& inputs, const Attributes& attributes,
                              const std::vector<int64_t>* columns, const Ids<Id>& ids,
                              Layout<const T>* out) {
  int64_t examples = 0, width = 0;
  TF_RETURN_IF_ERROR(SameRows(attributes, ids, &examples));
  std::vector<int64_t> begins;
  for (const Feature& feature : attributes.features()) {
    begins.push_back(width);
    width += attributes.dims()[feature.table];
  }
  if (columns != nullptr) begins = *columns;
  const bool fits = inputs.size() == 1 && inputs[0].dims() == 2 &&
                    inputs[0].dim_size(0) == examples &&
                    (columns != nullptr || inputs[0].dim_size(1) == width);
  if (!fits) {
    return WrongShape("gradients", inputs[0], absl::StrCat("[", examples, ", ", width, "]"));
  }
  for (int f = 0; f < attributes.count(); ++f) {
    const int64_t end = inputs[0].dim_size(1) - attributes.dims()[attributes.features()[f].table];
    if (begins[f] < 0 || begins[f] > end) {
      return FeatureError(attributes.features()[f],
                   absl::StrCat("columns from ", begins[f], " are not in gradient ",
                                inputs[0].shape().DebugString()));
    }
    out->begins.push_back(inputs[0].flat<T>().data() + begins[f]);
  }
  out->strides.assign(attributes.count(), inputs[0].dim_size(1));
  return absl::OkStatus();
}

}  // namespace

template <typename T, typename Id>
absl::Status ReadGradients(OpKernelContext* c, const Attributes& attributes,
                           const std::vector<int64_t>* columns, const Ids<Id>& ids,
                           Layout<const T>* out) {
  OpInputList inputs;
  TF_RETURN_IF_ERROR(c->input_list("gradients", &inputs));
  if (attributes.concatenated()) return ReadConcatenated(inputs, attributes, columns, ids, out);
  if (inputs.size() != attributes.count()) {
    return absl::InvalidArgumentError(
        absl::StrCat(inputs.size(), " gradients; expected ", attributes.count()));
  }
  for (int f = 0; f < attributes.count(); ++f) {
    const int64_t dim = attributes.dims()[attributes.features()[f].table];
    const Tensor& each = inputs[f];
    if (each.dims() < 2 || each.dim_size(each.dims() - 1) != dim ||
        each.NumElements() != ids[f].examples * dim) {
      return FeatureError(attributes.features()[f],
                   absl::StrCat("gradient ", each.shape().DebugString(), "; expected […, ", dim,
                                "] of ", ids[f].examples, " rows"));
    }
    out->begins.push_back(each.flat<T>().data());
    out->strides.push_back(dim);
  }
  return absl::OkStatus();
}

#define WORKBENCH_INSTANTIATE_IDS(T, Id)                                                    \
  template absl::Status ReadGradients(OpKernelContext*, const Attributes&,                  \
                                      const std::vector<int64_t>*, const Ids<Id>&, Layout<const T>*)
#define WORKBENCH_INSTANTIATE(T)          \
  WORKBENCH_INSTANTIATE_IDS(T, int32_t);  \
  WORKBENCH_INSTANTIATE_IDS(T, int64_t)
WORKBENCH_INSTANTIATE(float);
WORKBENCH_INSTANTIATE(Eigen::half);
WORKBENCH_INSTANTIATE(tensorflow::bfloat16);
#undef WORKBENCH_INSTANTIATE
#undef WORKBENCH_INSTANTIATE_IDS

}  // namespace workbench::grouped
