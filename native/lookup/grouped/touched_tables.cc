#include "lookup/grouped/touched_tables.h"

#include <algorithm>
#include <limits>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "lookup/grouped/grouped_gradients.h"
#include "tensorflow/core/framework/types.h"
#include "threading/intra_op_threads.h"

namespace workbench::grouped {
namespace {

using tensorflow::OpKernelContext;

// Adds what a feature asked for; false, and nothing is added, where its ids are unordered.
template <typename T, typename Id>
bool AddFeature(const Attributes& attributes, const Ids<Id>& ids, int f, const FoundRows* found,
                const Layout<const T>& gradients, BlockRows* rows, TouchedTable<T>* to) {
  const bool weighted = ids[f].weights != nullptr;
  const int64_t blocks = CountBlocks(ids[f]);
  std::vector<float> factors;
  const int64_t zero_id = attributes.features()[f].zero_id;
  int64_t at = to->rows.ids, example = to->examples;
  bool lacking = false;
  for (int64_t b = 0; b < blocks; ++b) {
    if (ReadBlock(ids[f], b, rows) != BlockState::kRead) return false;
    const int64_t* table_rows =
        found == nullptr ? rows->rows.data() : (*found)[f] + PlaceOf(ids[f], *rows);
    LookedUp<float> combined;
    combined.splits = rows->splits.data();
    combined.weights = weighted ? rows->weights.data() : nullptr;
    combined.combiner = attributes.features()[f].combiner;
    const int64_t count = rows->end - rows->begin;
    factors.resize(count);
    RowFactors(combined, 0, count, factors.data());
    for (int64_t e = 0; e < count; ++e) {
      const T* gradient = gradients.begins[f] + (rows->begin + e) * gradients.strides[f];
      if (!weighted) {
        to->factors[example] = factors[e];
        to->gradients[example] = gradient;
      }
      lacking = lacking || rows->splits[e] == rows->splits[e + 1];
      for (int32_t i = rows->splits[e]; i < rows->splits[e + 1]; ++i, ++at) {
        to->rows.rows[at] = table_rows[i];
        to->rows.examples[at] = static_cast<int32_t>(example);
        if (weighted) {
          to->factors[example] = factors[e] * rows->weights[i];
          to->gradients[example++] = gradient;
        }
      }
      if (!weighted) ++example;
    }
  }
  if (lacking && zero_id >= 0) {
    to->zeros.resize(to->dim);
    to->rows.rows[at] = zero_id;
    to->rows.examples[at++] = static_cast<int32_t>(example);
    to->factors[example] = 0.0f;
    to->gradients[example++] = to->zeros.data();
  }
  to->rows.ids = at;
  to->examples = example;
  return true;
}

// The ids that the features of a table ask for at most, and the examples that they are of.
struct Most {
  int64_t ids = 0, examples = 0;
};

// int32 counts what one feature has, which was checked; and what all those of a table have together.
template <typename Id>
absl::Status CountTable(const Attributes& attributes, const Ids<Id>& ids,
                        const std::vector<int>& features, Most* most) {
  for (int f : features) {
    const int64_t count = MostIds(ids[f]);
    const int64_t zero = attributes.features()[f].zero_id >= 0;
    most->ids += count + zero;
    most->examples += (ids[f].weights == nullptr ? ids[f].examples : count) + zero;
  }
  if (std::max(most->ids, most->examples) < std::numeric_limits<int32_t>::max()) {
    return absl::OkStatus();
  }
  return FeatureError(attributes.features()[features.front()],
               absl::StrCat("its table is asked for ", most->ids, " ids in ", most->examples,
                            " rows, by ", features.size(),
                            " features together; expected as many as int32 counts. Use smaller "
                            "batches"));
}

}  // namespace

template <typename T, typename Id>
absl::Status ReadTouched(OpKernelContext* c, const Attributes& attributes,
                       const std::vector<int64_t>* columns, std::vector<TouchedTable<T>>* out) {
  Ids<Id> ids;
  TF_RETURN_IF_ERROR(ReadChecked(c, attributes, &ids));
  return ReadTouched(c, attributes, columns, nullptr, &ids, out);
}

template <typename Id>
absl::Status ReadChecked(OpKernelContext* c, const Attributes& attributes, Ids<Id>* ids) {
  const std::vector<int64_t> any(attributes.dims().size(), std::numeric_limits<int64_t>::max());
  return ids->Read(c, attributes, any);
}

template <typename T, typename Id>
absl::Status ReadTouched(OpKernelContext* c, const Attributes& attributes,
                       const std::vector<int64_t>* columns, const FoundRows* found,
                       Ids<Id>* all_ids, std::vector<TouchedTable<T>>* out) {
  const int64_t tables = static_cast<int64_t>(attributes.dims().size());
  Ids<Id>& ids = *all_ids;
  Layout<const T> gradients;
  TF_RETURN_IF_ERROR(ReadGradients(c, attributes, columns, ids, &gradients));
  std::vector<std::vector<int>> features(tables);
  int64_t count = 0;
  for (int f = 0; f < attributes.count(); ++f) {
    features[attributes.features()[f].table].push_back(f);
    count += ids[f].count;
  }
  std::vector<Most> most(tables);
  for (int64_t t = 0; t < tables; ++t) {
    TF_RETURN_IF_ERROR(CountTable(attributes, ids, features[t], &most[t]));
  }
  out->resize(tables);
  // Few words for each table; an error ends the step, so that order does not matter.
  FirstError error;
  std::mutex mu;
  const auto part = [&](int64_t begin, int64_t end) {
    BlockRows rows;
    for (int64_t t = begin; t < end; ++t) {
      TouchedTable<T>& touched = (*out)[t];
      touched.dim = attributes.dims()[t];
      touched.rows = TableRows(most[t].ids);
      touched.gradients = Unset<const T*>(most[t].examples);
      touched.factors = Unset<float>(most[t].examples);
      for (int f : features[t]) {
        if (AddFeature(attributes, ids, f, found, gradients, &rows, &touched)) continue;
        // Once more, in order; the temporary memory is the context's.
        const std::lock_guard<std::mutex> hold(mu);
        absl::Status ordered = ids.Order(c, attributes, f);
        if (ordered.ok() && !AddFeature(attributes, ids, f, found, gradients, &rows, &touched)) {
          ordered = FeatureError(attributes.features()[f], "an id, or the default id, is below 0");
        }
        if (!ordered.ok()) return error.Found(f, ordered);
      }
      OrderRows(&touched.rows);
    }
  };
  ByCost(c, tables, 12 * count, part);
  return error.status();
}

void ByRangesOfTables(OpKernelContext* c, const std::vector<int64_t>& rows,
                      const std::vector<int64_t>& step, int64_t cost,
                      const std::function<void(size_t, int64_t, int64_t)>& part) {
  struct Range {
    size_t table;
    int64_t begin, end;
  };
  std::vector<Range> ranges;
  for (size_t t = 0; t < rows.size(); ++t) {
    for (int64_t r = 0; r < rows[t]; r += step[t]) {
      ranges.push_back({t, r, std::min(r + step[t], rows[t])});
    }
  }
  ByCost(c, static_cast<int64_t>(ranges.size()), cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) part(ranges[i].table, ranges[i].begin, ranges[i].end);
  });
}

template <typename T>
void ByRowsOfTables(OpKernelContext* c, const std::vector<TouchedTable<T>>& touched, int64_t row_ns,
                    const std::function<void(size_t, int64_t, int64_t)>& part) {
  // Ranges small enough to be shared out evenly.
  constexpr int64_t kRows = 512;
  std::vector<int64_t> rows;
  int64_t cost = 0;
  for (const TouchedTable<T>& each : touched) {
    rows.push_back(each.rows.unique);
    cost += each.rows.ids * CostOfId(each.dim * sizeof(T)) + each.rows.unique * row_ns;
  }
  ByRangesOfTables(c, rows, std::vector<int64_t>(rows.size(), kRows), cost, part);
}

#define WORKBENCH_INSTANTIATE_IDS(T, Id)                                            \
  template absl::Status ReadTouched<T, Id>(OpKernelContext*, const Attributes&,       \
                                         const std::vector<int64_t>*,               \
                                         std::vector<TouchedTable<T>>*);              \
  template absl::Status ReadTouched<T, Id>(OpKernelContext*, const Attributes&,       \
                                         const std::vector<int64_t>*, const FoundRows*, Ids<Id>*, \
                                         std::vector<TouchedTable<T>>*)
#define WORKBENCH_INSTANTIATE(T)                                                    \
  WORKBENCH_INSTANTIATE_IDS(T, int32_t);                                            \
  WORKBENCH_INSTANTIATE_IDS(T, int64_t);                                            \
  template void ByRowsOfTables(OpKernelContext*, const std::vector<TouchedTable<T>>&, int64_t, \
                               const std::function<void(size_t, int64_t, int64_t)>&)
WORKBENCH_INSTANTIATE(float);
WORKBENCH_INSTANTIATE(Eigen::half);
WORKBENCH_INSTANTIATE(tensorflow::bfloat16);
#undef WORKBENCH_INSTANTIATE
#undef WORKBENCH_INSTANTIATE_IDS
template absl::Status ReadChecked(OpKernelContext*, const Attributes&, Ids<int32_t>*);
template absl::Status ReadChecked(OpKernelContext*, const Attributes&, Ids<int64_t>*);

}  // namespace workbench::grouped
