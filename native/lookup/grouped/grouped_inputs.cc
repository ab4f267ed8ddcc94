#include "lookup/grouped/grouped_inputs.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace workbench::grouped {

using tensorflow::OpInputList;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

absl::Status Attributes::Read(OpKernelConstruction* c) {
  std::vector<std::string> names, combiners;
  std::vector<int64_t> tables, default_ids, zero_ids;
  std::vector<bool> prunes, fills, ends;
  std::vector<float> norms;
  int count = 0;
  TF_RETURN_IF_ERROR(c->GetAttr("F", &count));
  TF_RETURN_IF_ERROR(c->GetAttr("features", &names));
  TF_RETURN_IF_ERROR(c->GetAttr("combiners", &combiners));
  TF_RETURN_IF_ERROR(c->GetAttr("table_of", &tables));
  TF_RETURN_IF_ERROR(c->GetAttr("default_ids", &default_ids));
  TF_RETURN_IF_ERROR(c->GetAttr("prune_invalid_ids", &prunes));
  TF_RETURN_IF_ERROR(c->GetAttr("fill_empty_rows", &fills));
  TF_RETURN_IF_ERROR(c->GetAttr("ends_with_ids", &ends));
  TF_RETURN_IF_ERROR(c->GetAttr("max_norms", &norms));
  if (c->HasAttr("zero_ids")) TF_RETURN_IF_ERROR(c->GetAttr("zero_ids", &zero_ids));
  TF_RETURN_IF_ERROR(c->GetAttr("concatenated", &concatenated_));
  int number_of_tables = 0;
  TF_RETURN_IF_ERROR(c->GetAttr("N", &number_of_tables));
  TF_RETURN_IF_ERROR(c->GetAttr("dims", &dims_));
  if (dims_.size() != static_cast<size_t>(number_of_tables)) {
    return absl::InvalidArgumentError(
        absl::StrCat("dims has ", dims_.size(), " values; expected ", number_of_tables));
  }
  const size_t expected = count;
  if (names.size() != expected || combiners.size() != expected || tables.size() != expected ||
      default_ids.size() != expected || prunes.size() != expected || fills.size() != expected) {
    return absl::InvalidArgumentError(absl::StrCat(
        "features, combiners, table_of, default_ids, prune_invalid_ids and fill_empty_rows have ",
        names.size(), ", ", combiners.size(), ", ", tables.size(), ", ", default_ids.size(), ", ",
        prunes.size(), " and ", fills.size(), " values; expected ", expected, " of each"));
  }
  if (!ends.empty() && ends.size() != expected) {
    return absl::InvalidArgumentError(absl::StrCat("ends_with_ids has ", ends.size(),
                                                   " values; expected none or ", expected));
  }
  if (!norms.empty() && norms.size() != expected) {
    return absl::InvalidArgumentError(absl::StrCat("max_norms has ", norms.size(),
                                                   " values; expected none or ", expected));
  }
  if (!zero_ids.empty() && zero_ids.size() != expected) {
    return absl::InvalidArgumentError(absl::StrCat("zero_ids has ", zero_ids.size(),
                                                   " values; expected none or ", expected));
  }
  for (int64_t dim : dims_) {
    if (dim < 1) return absl::InvalidArgumentError("dims has one below 1; expected columns");
  }
  for (int f = 0; f < count; ++f) {
    Feature each;
    each.name = names[f];
    each.table = static_cast<int>(tables[f]);
    each.combiner = combiners[f] == "sum"    ? Combiner::kSum
                    : combiners[f] == "mean" ? Combiner::kMean
                                             : Combiner::kSqrtn;
    each.rules.prune_ids = prunes[f];
    each.rules.fill_empty_rows = fills[f];
    each.rules.fill_id = default_ids[f];
    each.ends_with_ids = !ends.empty() && ends[f];
    if (!norms.empty()) each.max_norm = norms[f];
    if (!zero_ids.empty()) each.zero_id = zero_ids[f];
    if (tables[f] < 0 || tables[f] >= number_of_tables) {
      return FeatureError(each, absl::StrCat("table_of is ", tables[f], ", not one of ",
                                      number_of_tables, " tables"));
    }
    features_.push_back(each);
  }
  return ReadWeighted(c);
}

absl::Status Attributes::ReadWeighted(OpKernelConstruction* c) {
  std::vector<int64_t> weights_of;
  TF_RETURN_IF_ERROR(c->GetAttr("weights_of", &weights_of));
  int given = 0;
  TF_RETURN_IF_ERROR(c->GetAttr("W", &given));
  if (weights_of.size() != static_cast<size_t>(given)) {
    return absl::InvalidArgumentError(
        absl::StrCat("weights_of has ", weights_of.size(), " values; expected ", given));
  }
  for (int w = 0; w < given; ++w) {
    const int64_t f = weights_of[w];
    if (f < 0 || f >= count() || features_[f].weights >= 0) {
      return absl::InvalidArgumentError(absl::StrCat("weights_of[", w, "] is ", f,
                                                     "; expected each feature once at most, of ",
                                                     count()));
    }
    Feature& feature = features_[f];
    feature.weights = w;
    // A sum keeps what its weights take off.
    feature.rules.prune_weights = feature.rules.prune_ids && feature.combiner != Combiner::kSum;
  }
  return absl::OkStatus();
}

absl::Status FeatureError(const Feature& feature, const std::string& what) {
  return absl::InvalidArgumentError(
      feature.name.empty() ? what : absl::StrCat("feature '", feature.name, "': ", what));
}

template <typename Id>
absl::Status Ids<Id>::Read(OpKernelContext* c, const Attributes& attributes,
                           const std::vector<int64_t>& table_rows) {
  OpInputList ids, rows, dense_shapes, weights;
  TF_RETURN_IF_ERROR(c->input_list("ids", &ids));
  TF_RETURN_IF_ERROR(c->input_list("rows", &rows));
  TF_RETURN_IF_ERROR(c->input_list("dense_shapes", &dense_shapes));
  TF_RETURN_IF_ERROR(c->input_list("weights", &weights));
  features_.resize(attributes.count());
  shapes_.resize(attributes.count());
  ordered_.reserve(4 * attributes.count());
  for (int f = 0; f < attributes.count(); ++f) {
    const Feature& feature = attributes.features()[f];
    FeatureIds<Id>& in = features_[f];
    in.table_rows = table_rows[feature.table];
    in.prune = feature.rules.prune_ids;
    in.fills = feature.rules.fill_empty_rows;
    in.fill_id = feature.rules.fill_id;
    in.block_ids = BlockIds(attributes.dims()[feature.table] * sizeof(float));
    in.prune_weights = feature.rules.prune_weights;
    if (feature.weights >= 0) {
      const Tensor& given = weights[feature.weights];
      if (given.NumElements() != ids[f].NumElements()) {
        return FeatureError(feature, absl::StrCat(given.NumElements(), " weights for ",
                                           ids[f].NumElements(), " ids; expected one each"));
      }
      in.weights = given.flat<float>().data();
    }
    bool flat = true;
    TF_RETURN_IF_ERROR(ReadOne(feature, ids[f], rows[f], dense_shapes[f], &in, &shapes_[f], &flat));
    if (!flat) TF_RETURN_IF_ERROR(Order(c, attributes, f));
  }
  return absl::OkStatus();
}

template <typename Id>
absl::Status Ids<Id>::ReadOne(const Feature& feature, const Tensor& ids, const Tensor& rows,
                              const Tensor& dense_shape, FeatureIds<Id>* in,
                              TensorShape* examples, bool* flat) const {
  in->ids = ids.flat<Id>().data();
  in->count = ids.NumElements();
  *flat = true;
  if (rows.dims() == 0) {
    in->dense = true;
    in->examples = in->count;
    *examples = ids.shape();
  } else if (rows.dims() == 1) {
    TF_RETURN_IF_ERROR(ReadSplits(feature, ids, rows, in));
    TF_RETURN_IF_ERROR(examples->AddDimWithStatus(in->examples));
  } else {
    TF_RETURN_IF_ERROR(ReadIndices(feature, ids, rows, dense_shape, in, examples));
    *flat = rows.dim_size(1) == 2;
  }
  if (in->count + in->examples >= std::numeric_limits<int32_t>::max()) {
    return FeatureError(feature, absl::StrCat(in->count, " ids of ", in->examples,
                                       " rows; expected no more than int32 counts together"));
  }
  return absl::OkStatus();
}

template <typename Id>
absl::Status Ids<Id>::ReadSplits(const Feature& feature, const Tensor& ids, const Tensor& splits,
                                 FeatureIds<Id>* in) const {
  if (ids.dims() != 1 || splits.NumElements() < 1) {
    return FeatureError(feature, absl::StrCat("ids ", ids.shape().DebugString(), ", row_splits ",
                                       splits.shape().DebugString(),
                                       "; expected [n] and [examples + 1]"));
  }
  in->splits = splits.flat<int64_t>().data();
  in->examples = splits.NumElements() - 1;
  if (in->splits[0] == 0 && in->splits[in->examples] == in->count) return absl::OkStatus();
  return FeatureError(feature, absl::StrCat("row_splits go from ", in->splits[0], " to ",
                                     in->splits[in->examples], "; expected 0 to ", in->count,
                                     ", the number of ids"));
}

template <typename Id>
absl::Status Ids<Id>::ReadIndices(const Feature& feature, const Tensor& ids, const Tensor& indices,
                                  const Tensor& dense_shape, FeatureIds<Id>* in,
                                  TensorShape* examples) const {
  const int64_t rank = feature.ends_with_ids ? 2 : dense_shape.NumElements();
  if (ids.dims() != 1 || dense_shape.dims() != 1 || rank < 2 || indices.dims() != 2 ||
      indices.dim_size(1) != rank || indices.dim_size(0) != in->count) {
    return FeatureError(feature, absl::StrCat("ids ", ids.shape().DebugString(), ", rows ",
                                       indices.shape().DebugString(), ", dense_shape ",
                                       dense_shape.shape().DebugString(),
                                       "; expected [n], row_splits [examples + 1] or indices "
                                       "[n, rank], and [rank], rank at least 2"));
  }
  in->indices = indices.flat<int64_t>().data();
  if (feature.ends_with_ids) {
    const int64_t last = in->count == 0 ? -1 : in->indices[2 * (in->count - 1)];
    if (last < -1 || last >= std::numeric_limits<int32_t>::max()) {
      return FeatureError(feature, absl::StrCat("the last id is in row ", last,
                                         "; expected a row that int32 counts"));
    }
    in->examples = last + 1;
    return examples->AddDimWithStatus(in->examples);
  }
  const auto sizes = dense_shape.flat<int64_t>();
  in->examples = RowCount(sizes.data(), static_cast<int>(rank));
  if (in->examples < 0) {
    return FeatureError(feature, absl::StrCat("dense_shape is ", dense_shape.SummarizeValue(8),
                                       "; expected no negative size, and rows that int32 counts"));
  }
  for (int64_t d = 0; d + 1 < rank; ++d) TF_RETURN_IF_ERROR(examples->AddDimWithStatus(sizes(d)));
  return absl::OkStatus();
}

template <typename Id>
absl::Status Ids<Id>::Order(OpKernelContext* c, const Attributes& attributes, int feature) {
  FeatureIds<Id>& in = features_[feature];
  const Feature& of = attributes.features()[feature];
  if (in.splits != nullptr) return FeatureError(of, "row_splits fall; expected each at or above the last");
  if (of.ends_with_ids) {
    for (int64_t i = 0; i < in.count; ++i) {
      if (in.indices[2 * i] >= 0) continue;
      return FeatureError(of, absl::StrCat("an id is in row ", in.indices[2 * i],
                                    "; expected a row of 0 or more"));
    }
    return FeatureError(of, "ids do not come in order of their rows");
  }
  OpInputList dense_shapes;
  TF_RETURN_IF_ERROR(c->input_list("dense_shapes", &dense_shapes));
  SparseIds<Id> sparse;
  sparse.ids = in.ids;
  sparse.indices = in.indices;
  sparse.weights = in.weights;
  sparse.count = in.count;
  sparse.dense_shape = dense_shapes[feature].template flat<int64_t>().data();
  sparse.rank = static_cast<int>(dense_shapes[feature].NumElements());
  Tensor narrow, cursors, values, wide;
  TF_RETURN_IF_ERROR(
      c->allocate_temp(tensorflow::DT_INT32, TensorShape({in.examples + 1}), &narrow));
  TF_RETURN_IF_ERROR(
      c->allocate_temp(tensorflow::DT_INT32, TensorShape({in.examples}), &cursors));
  int32_t* splits = narrow.flat<int32_t>().data();
  // Nothing is pruned or filled here: ReadBlock does.
  const std::string problem = SplitRows(sparse, KeepRules{}, in.examples, splits);
  if (!problem.empty()) return FeatureError(of, problem);
  TF_RETURN_IF_ERROR(c->allocate_temp(tensorflow::DataTypeToEnum<Id>::v(), TensorShape({in.count}),
                                      &values));
  TF_RETURN_IF_ERROR(
      c->allocate_temp(tensorflow::DT_INT64, TensorShape({in.examples + 1}), &wide));
  Tensor weights, places;
  float* ordered_weights = nullptr;
  int32_t* ordered_places = nullptr;
  if (in.weights != nullptr) {
    const TensorShape shape({in.count});
    TF_RETURN_IF_ERROR(c->allocate_temp(tensorflow::DT_FLOAT, shape, &weights));
    TF_RETURN_IF_ERROR(c->allocate_temp(tensorflow::DT_INT32, shape, &places));
    in.weights = ordered_weights = weights.flat<float>().data();
    in.places = ordered_places = places.flat<int32_t>().data();
  }
  KeepIds<Id>(sparse, KeepRules{}, in.examples, splits, cursors.flat<int32_t>().data(),
              values.flat<Id>().data(), ordered_weights, ordered_places);
  std::copy(splits, splits + in.examples + 1, wide.flat<int64_t>().data());
  in.ids = values.flat<Id>().data();
  in.indices = nullptr;
  in.splits = wide.flat<int64_t>().data();
  for (const Tensor& each : {values, wide, weights, places}) ordered_.push_back(each);
  return absl::OkStatus();
}

template <typename Id>
std::vector<Block> AllBlocks(const Ids<Id>& ids, int features) {
  std::vector<Block> blocks;
  for (int f = 0; f < features; ++f) {
    const int64_t count = CountBlocks(ids[f]);
    for (int64_t b = 0; b < count; ++b) blocks.push_back({f, b});
  }
  return blocks;
}

template <typename Id>
absl::Status NoSuchRow(const Feature& feature, const FeatureIds<Id>& in, const BlockRows& block) {
  int64_t id = 0;
  const int64_t example = FirstOutside(in, block, &id);
  return FeatureError(feature, absl::StrCat("row ", example, ": id ", id, " is not in [0, ",
                                     in.table_rows, "), the rows of the embedding table"));
}

absl::Status ReadColumns(OpKernelConstruction* c, const Attributes& attributes,
                         std::vector<int64_t>* columns) {
  TF_RETURN_IF_ERROR(c->GetAttr("columns", columns));
  if (columns->size() == static_cast<size_t>(attributes.count())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("columns has ", columns->size(),
                                                 " values; expected ", attributes.count()));
}

template <typename Id>
absl::Status SameRows(const Attributes& attributes, const Ids<Id>& ids, int64_t* examples) {
  *examples = ids[0].examples;
  for (int f = 1; f < attributes.count(); ++f) {
    if (ids[f].examples == *examples) continue;
    return FeatureError(attributes.features()[f],
                 absl::StrCat(ids[f].examples, " rows, feature '", attributes.features()[0].name,
                              "' has ", *examples, "; expected as many to be one output"));
  }
  return absl::OkStatus();
}

#define WORKBENCH_INSTANTIATE(Id)                                       \
  template class Ids<Id>;                                               \
  template absl::Status SameRows(const Attributes&, const Ids<Id>&, int64_t*); \
  template std::vector<Block> AllBlocks(const Ids<Id>&, int);           \
  template absl::Status NoSuchRow(const Feature&, const FeatureIds<Id>&, const BlockRows&)
WORKBENCH_INSTANTIATE(int32_t);
WORKBENCH_INSTANTIATE(int64_t);
#undef WORKBENCH_INSTANTIATE

}  // namespace workbench::grouped
