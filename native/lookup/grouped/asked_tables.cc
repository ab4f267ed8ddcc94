#include "lookup/grouped/asked_tables.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "combine/combine_calls.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/core/threadpool.h"

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
  TF_RETURN_IF_ERROR(Together(attributes, ids, &examples));
  std::vector<int64_t> begins;
  for (const Feature& feature : attributes.features()) {
    begins.push_back(width);
    width += attributes.dims()[feature.table];
  }
  if (columns != nullptr) begins = *columns;
  const bool fits = inputs.size() == 1 && inputs[0].dims() == 2 &&
                    inputs[0].dim_size(0) == examples &&
                    (columns != nullptr || inputs[0].dim_size(1) == width);
  if (!fits) return WrongShape("gradients", inputs[0], absl::StrCat("[", examples, ", ", width, "]"));
  for (int f = 0; f < attributes.count(); ++f) {
    const int64_t end = inputs[0].dim_size(1) - attributes.dims()[attributes.features()[f].table];
    if (begins[f] < 0 || begins[f] > end) {
      return Wrong(attributes.features()[f],
                   absl::StrCat("columns from ", begins[f], " are not in gradient ",
                                inputs[0].shape().DebugString()));
    }
    out->begins.push_back(inputs[0].flat<T>().data() + begins[f]);
  }
  out->strides.assign(attributes.count(), inputs[0].dim_size(1));
  return absl::OkStatus();
}

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
      return Wrong(attributes.features()[f],
                   absl::StrCat("gradient ", each.shape().DebugString(), "; expected […, ", dim,
                                "] of ", ids[f].examples, " rows"));
    }
    out->begins.push_back(each.flat<T>().data());
    out->strides.push_back(dim);
  }
  return absl::OkStatus();
}

float Factor(Combiner combiner, float length) {
  if (combiner == Combiner::kSum) return 1.0f;
  return 1.0f / (combiner == Combiner::kMean ? length : std::sqrt(length));
}

// Adds what a feature asked for; false, and nothing is added, where its ids are unordered.
template <typename T, typename Id>
bool AddFeature(const Attributes& attributes, const Ids<Id>& ids, int f,
                const Layout<const T>& gradients, BlockRows* rows, AskedTable<T>* to) {
  const Combiner combiner = attributes.features()[f].combiner;
  const int64_t blocks = CountBlocks(ids[f]);
  int64_t at = to->rows.ids;
  for (int64_t b = 0; b < blocks; ++b) {
    if (ReadBlock(ids[f], b, rows) != BlockState::kRead) return false;
    for (int64_t e = 0; e < rows->end - rows->begin; ++e) {
      const int32_t first = rows->splits[e], last = rows->splits[e + 1];
      const int64_t example = to->examples + rows->begin + e;
      to->factors[example] = Factor(combiner, static_cast<float>(last - first));
      to->gradients[example] = gradients.begins[f] + (rows->begin + e) * gradients.strides[f];
      for (int32_t i = first; i < last; ++i, ++at) {
        to->rows.rows[at] = rows->rows[i];
        to->rows.examples[at] = static_cast<int32_t>(example);
      }
    }
  }
  to->rows.ids = at;
  to->examples += ids[f].examples;
  return true;
}

}  // namespace

template <typename T, typename Id>
absl::Status ReadAsked(OpKernelContext* c, const Attributes& attributes,
                       const std::vector<int64_t>* columns, std::vector<AskedTable<T>>* out) {
  const int64_t tables = static_cast<int64_t>(attributes.dims().size());
  Ids<Id> ids;
  // Which rows there are the lookup has checked.
  const std::vector<int64_t> any(tables, std::numeric_limits<int64_t>::max());
  TF_RETURN_IF_ERROR(ids.Read(c, attributes, any));
  Layout<const T> gradients;
  TF_RETURN_IF_ERROR(ReadGradients(c, attributes, columns, ids, &gradients));
  std::vector<std::vector<int>> features(tables);
  int64_t count = 0;
  for (int f = 0; f < attributes.count(); ++f) {
    features[attributes.features()[f].table].push_back(f);
    count += ids[f].count;
  }
  out->resize(tables);
  // Few words for each table; an error ends the step, so that order does not matter.
  FirstError error;
  std::mutex mu;
  const auto part = [&](int64_t begin, int64_t end) {
    BlockRows rows;
    for (int64_t t = begin; t < end; ++t) {
      AskedTable<T>& asked = (*out)[t];
      int64_t most = 0, examples = 0;
      for (int f : features[t]) {
        examples += ids[f].examples;
        most += ids[f].count + (ids[f].fills ? ids[f].examples : 0);
      }
      asked.dim = attributes.dims()[t];
      asked.rows = TableRows(most);
      asked.gradients = Unset<const T*>(examples);
      asked.factors = Unset<float>(examples);
      for (int f : features[t]) {
        if (AddFeature(attributes, ids, f, gradients, &rows, &asked)) continue;
        // Once more, in order; the temporary memory is the context's.
        const std::lock_guard<std::mutex> hold(mu);
        absl::Status ordered = ids.Order(c, attributes, f);
        if (ordered.ok() && !AddFeature(attributes, ids, f, gradients, &rows, &asked)) {
          ordered = Wrong(attributes.features()[f], "an id, or the default id, is below 0");
        }
        if (!ordered.ok()) return error.Found(f, ordered);
      }
      OrderRows(&asked.rows);
    }
  };
  c->device()->tensorflow_cpu_worker_threads()->workers->ParallelFor(
      tables, 12 * count / std::max<int64_t>(1, tables), part);
  return error.status();
}

template <typename T>
void ByRowsOfTables(OpKernelContext* c, const std::vector<AskedTable<T>>& asked, int64_t row_ns,
                    const std::function<void(size_t, int64_t, int64_t)>& part) {
  // Ranges small enough to be shared out evenly.
  constexpr int64_t kRows = 512;
  struct Range {
    size_t table;
    int64_t begin, end;
  };
  std::vector<Range> ranges;
  int64_t cost = 0;
  for (size_t t = 0; t < asked.size(); ++t) {
    const int64_t count = asked[t].rows.unique;
    cost += asked[t].rows.ids * CostOfId(asked[t].dim * sizeof(T)) + count * row_ns;
    for (int64_t r = 0; r < count; r += kRows) ranges.push_back({t, r, std::min(r + kRows, count)});
  }
  const int64_t number = static_cast<int64_t>(ranges.size());
  c->device()->tensorflow_cpu_worker_threads()->workers->ParallelFor(
      number, cost / std::max<int64_t>(1, number), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) part(ranges[i].table, ranges[i].begin, ranges[i].end);
      });
}

#define WORKBENCH_INSTANTIATE_IDS(T, Id)                                            \
  template absl::Status ReadAsked<T, Id>(OpKernelContext*, const Attributes&,       \
                                         const std::vector<int64_t>*,               \
                                         std::vector<AskedTable<T>>*)
#define WORKBENCH_INSTANTIATE(T)                                                    \
  WORKBENCH_INSTANTIATE_IDS(T, int32_t);                                            \
  WORKBENCH_INSTANTIATE_IDS(T, int64_t);                                            \
  template void ByRowsOfTables(OpKernelContext*, const std::vector<AskedTable<T>>&, int64_t, \
                               const std::function<void(size_t, int64_t, int64_t)>&)
WORKBENCH_INSTANTIATE(float);
WORKBENCH_INSTANTIATE(Eigen::half);
WORKBENCH_INSTANTIATE(tensorflow::bfloat16);
#undef WORKBENCH_INSTANTIATE
#undef WORKBENCH_INSTANTIATE_IDS

}  // namespace workbench::grouped
