#include "cuda/ops/grouped_call.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "combine/combine_calls.h"
#include "cuda/ops/device_context.h"
#include "lookup/row_ids.h"
#include "tensorflow/core/framework/tensor.h"

namespace workbench::cuda {

using grouped::Feature;
using tensorflow::OpInputList;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::OpOutputList;
using tensorflow::Tensor;
using tensorflow::TensorShape;

absl::Status GroupedAttributes::Read(OpKernelConstruction* c) {
  TF_RETURN_IF_ERROR(all_.Read(c));
  tensorflow::DataType of_tables, of_ids;
  TF_RETURN_IF_ERROR(c->GetAttr("T", &of_tables));
  TF_RETURN_IF_ERROR(c->GetAttr("Tid", &of_ids));
  type_ = ScalarOf(of_tables);
  wide_ids_ = of_ids == tensorflow::DT_INT64;
  for (const Feature& feature : all_.features()) {
    names_.push_back(feature.name);
    if (!feature.ends_with_ids) continue;
    // Only the GPU knows where its last id is.
    return absl::UnimplementedError(absl::StrCat(
        "feature '", feature.name,
        "': its examples end with its ids, which a lookup on a GPU does not know; put the table "
        "and the lookup on the CPU, or fill empty rows"));
  }
  return absl::OkStatus();
}

absl::Status GroupedCall::Read(OpKernelContext* c, const GroupedAttributes& attributes,
                               uint64_t* complaint) {
  OpInputList ids, rows, dense_shapes, weights;
  TF_RETURN_IF_ERROR(c->input_list("ids", &ids));
  TF_RETURN_IF_ERROR(c->input_list("rows", &rows));
  TF_RETURN_IF_ERROR(c->input_list("dense_shapes", &dense_shapes));
  TF_RETURN_IF_ERROR(c->input_list("weights", &weights));
  const int count = attributes.all().count();
  features_.resize(count);
  shapes_.resize(count);
  tables_.resize(attributes.tables());
  for (int t = 0; t < attributes.tables(); ++t) {
    tables_[t].dim = attributes.all().dims()[t];
    tables_[t].rows = std::numeric_limits<int64_t>::max();
  }
  int64_t entries = 0;
  for (int f = 0; f < count; ++f) {
    const Feature& feature = attributes.all().features()[f];
    TF_RETURN_IF_ERROR(
        ReadFeature(feature, ids[f], rows[f], dense_shapes[f], &features_[f], &shapes_[f]));
    if (feature.weights >= 0) {
      TF_RETURN_IF_ERROR(ReadWeights(feature, weights[feature.weights], &features_[f]));
    }
    entries += features_[f].count + features_[f].examples;
  }
  if (entries >= std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(
        entries, " ids and rows of all features; expected no more than int32 counts together"));
  }
  call_.type = attributes.type();
  call_.wide_ids = attributes.wide_ids() ? 1 : 0;
  call_.feature_count = count;
  call_.table_count = attributes.tables();
  call_.features = features_.data();
  call_.tables = tables_.data();
  call_.complaint = complaint;
  return absl::OkStatus();
}

absl::Status GroupedCall::ReadTables(const DeviceTables& tables) {
  for (size_t t = 0; t < tables_.size(); ++t) {
    TF_RETURN_IF_ERROR(tables.CheckTable(static_cast<int>(t), tables_[t].dim));
    tables_[t].values = tables[t].data();
    tables_[t].rows = tables[t].dim_size(0);
  }
  return absl::OkStatus();
}

absl::Status GroupedCall::ReadFeature(const Feature& feature, const Tensor& ids,
                                      const Tensor& rows, const Tensor& dense_shape,
                                      FeatureCall* call, TensorShape* examples) const {
  call->table = feature.table;
  call->combiner = feature.combiner;
  call->prune = feature.rules.prune_ids ? 1 : 0;
  call->fills = feature.rules.fill_empty_rows ? 1 : 0;
  call->fill_id = feature.rules.fill_id;
  call->shortens = feature.max_norm >= 0 ? 1 : 0;
  call->max_norm = feature.max_norm;
  call->ids = ids.data();
  call->rows = rows.data();
  call->count = ids.NumElements();
  if (rows.dims() == 0) {
    call->kind = RowsKind::kDense;
    call->examples = call->count;
    *examples = ids.shape();
    return absl::OkStatus();
  }
  if (rows.dims() > 1) return ReadIndices(feature, ids, rows, dense_shape, call, examples);
  if (ids.dims() != 1 || rows.NumElements() < 1) {
    return grouped::FeatureError(feature, absl::StrCat("ids ", ids.shape().DebugString(),
                                                ", row_splits ", rows.shape().DebugString(),
                                                "; expected [n] and [examples + 1]"));
  }
  call->kind = RowsKind::kSplits64;
  call->examples = rows.NumElements() - 1;
  return examples->AddDimWithStatus(call->examples);
}

absl::Status GroupedCall::ReadIndices(const Feature& feature, const Tensor& ids,
                                      const Tensor& indices, const Tensor& dense_shape,
                                      FeatureCall* call, TensorShape* examples) const {
  const int64_t rank = dense_shape.NumElements();
  if (ids.dims() != 1 || dense_shape.dims() != 1 || rank < 2 || rank > kMostRank ||
      indices.dims() != 2 || indices.dim_size(1) != rank || indices.dim_size(0) != call->count) {
    return grouped::FeatureError(
        feature, absl::StrCat("ids ", ids.shape().DebugString(), ", rows ",
                              indices.shape().DebugString(), ", dense_shape ",
                              dense_shape.shape().DebugString(),
                              "; expected [n], row_splits [examples + 1] or indices [n, rank], and "
                              "[rank], rank from 2 to ",
                              kMostRank, " on a GPU"));
  }
  const auto sizes = dense_shape.flat<int64_t>();
  call->kind = RowsKind::kIndices;
  call->rank = static_cast<int32_t>(rank);
  call->examples = RowCount(sizes.data(), static_cast<int>(rank));
  if (call->examples < 0) {
    return grouped::FeatureError(feature, absl::StrCat("dense_shape is ", dense_shape.SummarizeValue(8),
                                                "; expected no negative size, and rows that int32 "
                                                "counts"));
  }
  for (int64_t d = 0; d + 1 < rank; ++d) {
    call->sizes[d] = sizes(d);
    TF_RETURN_IF_ERROR(examples->AddDimWithStatus(sizes(d)));
  }
  return absl::OkStatus();
}

absl::Status GroupedCall::ReadWeights(const Feature& feature, const Tensor& weights,
                                      FeatureCall* call) const {
  if (weights.NumElements() != call->count) {
    return grouped::FeatureError(feature, absl::StrCat(weights.NumElements(), " weights for ",
                                                call->count, " ids; expected one each"));
  }
  call->weights = weights.flat<float>().data();
  call->prune_weights = feature.rules.prune_weights ? 1 : 0;
  return absl::OkStatus();
}

absl::Status GroupedCall::AllocateWeightGradients(OpKernelContext* c,
                                                  const GroupedAttributes& attributes) {
  OpInputList weights;
  OpOutputList outputs;
  TF_RETURN_IF_ERROR(c->input_list("weights", &weights));
  TF_RETURN_IF_ERROR(c->output_list("weight_gradients", &outputs));
  for (int f = 0; f < attributes.all().count(); ++f) {
    const int own = attributes.all().features()[f].weights;
    if (own < 0) continue;
    Tensor* each = nullptr;
    TF_RETURN_IF_ERROR(outputs.allocate(own, weights[own].shape(), &each));
    features_[f].weight_gradient = each->flat<float>().data();
  }
  return absl::OkStatus();
}

// Checks that features which are one tensor have as many examples; says how wide it is.
absl::Status GroupedCall::SameRows(const GroupedAttributes& attributes, int64_t* width) const {
  *width = 0;
  for (int f = 0; f < attributes.all().count(); ++f) {
    *width += attributes.dim(f);
    if (features_[f].examples == features_[0].examples) continue;
    return grouped::FeatureError(
        attributes.all().features()[f],
        absl::StrCat(features_[f].examples, " rows, feature '", attributes.names()[0], "' has ",
                     features_[0].examples, "; expected as many to be one output"));
  }
  return absl::OkStatus();
}

absl::Status GroupedCall::AllocateVectors(OpKernelContext* c,
                                          const GroupedAttributes& attributes) {
  OpOutputList outputs;
  TF_RETURN_IF_ERROR(c->output_list("vectors", &outputs));
  const int64_t bytes = attributes.type() == Scalar::kFloat ? 4 : 2;
  Tensor* all = nullptr;
  int64_t width = 0, column = 0;
  if (attributes.all().concatenated()) {
    TF_RETURN_IF_ERROR(SameRows(attributes, &width));
    TF_RETURN_IF_ERROR(outputs.allocate(0, TensorShape({features_[0].examples, width}), &all));
  }
  for (int f = 0; f < attributes.all().count(); ++f) {
    const int64_t dim = attributes.dim(f);
    FeatureCall& feature = features_[f];
    if (all != nullptr) {
      feature.vectors = static_cast<char*>(all->data()) + column * bytes;
      feature.stride = width;
      column += dim;
      continue;
    }
    TensorShape shape = shapes_[f];
    TF_RETURN_IF_ERROR(shape.AddDimWithStatus(dim));
    Tensor* each = nullptr;
    TF_RETURN_IF_ERROR(outputs.allocate(f, shape, &each));
    feature.vectors = each->data();
    feature.stride = dim;
  }
  return absl::OkStatus();
}

absl::Status GroupedCall::ReadGradients(OpKernelContext* c, const GroupedAttributes& attributes,
                                        const std::vector<int64_t>* columns) {
  OpInputList inputs;
  TF_RETURN_IF_ERROR(c->input_list("gradients", &inputs));
  const bool together = attributes.all().concatenated();
  const int count = attributes.all().count();
  const int64_t bytes = attributes.type() == Scalar::kFloat ? 4 : 2;
  int64_t width = 0, column = 0;
  if (together) TF_RETURN_IF_ERROR(SameRows(attributes, &width));
  if (inputs.size() != (together ? 1 : count)) {
    return absl::InvalidArgumentError(
        absl::StrCat(inputs.size(), " gradients; expected ", together ? 1 : count));
  }
  for (int f = 0; f < count; ++f) {
    FeatureCall& feature = features_[f];
    const Tensor& from = inputs[together ? 0 : f];
    const int64_t dim = attributes.dim(f);
    const int64_t last = from.dims() < 2 ? -1 : from.dim_size(from.dims() - 1);
    const int64_t begin = !together ? 0 : columns == nullptr ? column : (*columns)[f];
    const bool wide = together && columns != nullptr ? last >= dim && begin <= last - dim
                                                     : last == (together ? width : dim);
    if (begin < 0 || !wide || from.NumElements() != feature.examples * last) {
      return grouped::FeatureError(
          attributes.all().features()[f],
          absl::StrCat("gradient ", from.shape().DebugString(), "; expected ", feature.examples,
                       " rows with ", dim, " columns from ", begin));
    }
    feature.vectors = static_cast<char*>(from.data()) + begin * bytes;
    feature.stride = last;
    column += dim;
  }
  return absl::OkStatus();
}

}  // namespace workbench::cuda
