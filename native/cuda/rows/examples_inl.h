#ifndef WORKBENCH_CUDA_ROWS_EXAMPLES_INL_H_
#define WORKBENCH_CUDA_ROWS_EXAMPLES_INL_H_

// Which ids an example has, on the device: nothing is sorted, counted or copied for it.

#include <cmath>
#include <cstdint>

#include "cuda/calls.h"
#include "cuda/complaint.h"
#include "cuda/device/portable.h"

namespace workbench::cuda {

// Features that a kernel takes at once: as many as its parameters have room for, and a power of two.
constexpr int kFeaturesAtOnce = 64;

// A row of more ids is summed in double, as on a CPU.
constexpr int64_t kLongRow = 1024;

// What of a launch's numbers belongs to which of its features.
struct FeatureEnds {
  int32_t at[kFeaturesAtOnce];  // the first number behind a feature's; none is behind the last one's

  FeatureEnds() {
    for (int32_t& end : at) end = INT32_MAX;
  }

  // Numbers end here in feature f of the launch. There are fewer ids and examples than 2³¹.
  void End(int f, int64_t end) { at[f] = static_cast<int32_t>(end); }

  // The first number of a feature.
  WORKBENCH_DEVICE int32_t Begin(int f) const { return f == 0 ? 0 : at[f - 1]; }

  WORKBENCH_DEVICE int FeatureOf(int32_t number) const {
    int f = 0;
    WORKBENCH_UNROLL
    for (int step = kFeaturesAtOnce / 2; step > 0; step /= 2) {
      if (number >= at[f + step - 1]) f += step;
    }
    return f;
  }
};

constexpr int64_t kNoRow = -1;
constexpr int64_t kWrongRow = -2;

// The ids of one feature.
template <typename Id>
struct ExampleIds {
  const Id* ids;
  const void* rows;
  const int64_t* values;
  int64_t count, examples, unique, fill_id, table_rows;
  int64_t sizes[kMostRank - 1];
  int32_t rank, feature;
  RowsKind kind;
  Combiner combiner;
  bool prune, fills;

  // The example of an id of kIndices, -1 where it lies outside of the sizes.
  WORKBENCH_DEVICE int64_t ExampleOf(int64_t i) const {
    const int64_t* at = static_cast<const int64_t*>(rows) + i * rank;
    int64_t example = 0;
    for (int d = 0; d + 1 < rank; ++d) {
      if (at[d] < 0 || at[d] >= sizes[d]) return -1;
      example = example * sizes[d] + at[d];
    }
    return example;
  }

  // The first id at or behind an example, of ids in order. It depends on the example alone, also
  // where ids are in none: the parts of all examples have all ids then, each once.
  WORKBENCH_DEVICE int64_t FirstOf(int64_t example) const {
    if (example <= 0) return 0;
    if (example >= examples) return count;
    int64_t low = 0, high = count;
    // Where all have as many ids this is the place.
    const int64_t guess = static_cast<int64_t>(static_cast<double>(example) * count / examples);
    if (guess > 0 && guess < count && ExampleOf(guess - 1) < example &&
        ExampleOf(guess) >= example) {
      return guess;
    }
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (ExampleOf(middle) < example) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  WORKBENCH_DEVICE int64_t Split(int64_t example) const {
    return kind == RowsKind::kSplits32 ? static_cast<const int32_t*>(rows)[example]
                                       : static_cast<const int64_t*>(rows)[example];
  }

  // The part of `ids` that an example has; false, with a complaint, where it is none.
  WORKBENCH_DEVICE bool Find(int64_t example, int64_t* first, int64_t* last,
                             uint64_t* complaint) const {
    if (kind == RowsKind::kDense) {
      *first = example;
      *last = example + 1;
      return true;
    }
    if (kind == RowsKind::kIndices) {
      *first = FirstOf(example);
      *last = FirstOf(example + 1);
      if (*first <= *last) return true;
      Complain(IdFault::kUnordered, feature, example, complaint);
      *last = *first;
      return false;
    }
    *first = Split(example);
    *last = Split(example + 1);
    const bool ends = (example > 0 || *first == 0) && (example + 1 < examples || *last == count);
    if (ends && *first >= 0 && *first <= *last && *last <= count) return true;
    Complain(IdFault::kSplits, feature, example, complaint);
    *first = *last = 0;
    return false;
  }

  // Complains where ids of an example's part are others'; lanes check one after the other.
  template <typename Lanes>
  WORKBENCH_DEVICE void Check(const Lanes& group, int64_t example, int64_t first, int64_t last,
                              uint64_t* complaint) const {
    if (kind != RowsKind::kIndices) return;
    group.Each([&](int lane) {
      for (int64_t i = first + lane; i < last; i += group.lanes()) {
        if (ExampleOf(i) != example) Complain(IdFault::kUnordered, feature, example, complaint);
      }
    });
  }

  // The row of the table that an id asks for; kNoRow where it asks for none, kWrongRow where it should.
  WORKBENCH_DEVICE int64_t RowOf(int64_t i) const {
    int64_t row = static_cast<int64_t>(ids[i]);
    if (prune && row < 0) return kNoRow;
    if (values != nullptr) row = row >= 0 && row < unique ? values[row] : -1;
    return row >= 0 && row < table_rows ? row : kWrongRow;
  }

  // The same with a complaint; what is wrong is below 0 too.
  WORKBENCH_DEVICE int64_t RowOf(int64_t i, int64_t example, uint64_t* complaint) const {
    const int64_t row = RowOf(i);
    if (row == kWrongRow) Complain(IdFault::kNoSuchRow, feature, example, complaint);
    return row;
  }

  // The row of an example that has no id, -1 if there is none.
  WORKBENCH_DEVICE int64_t FillRow(int64_t example, uint64_t* complaint) const {
    if (!fills) return -1;
    if (fill_id >= 0 && fill_id < table_rows) return fill_id;
    Complain(IdFault::kNoSuchRow, feature, example, complaint);
    return -1;
  }
};

template <typename Id>
inline ExampleIds<Id> IdsOf(const FeatureCall& call, int feature, int64_t table_rows) {
  ExampleIds<Id> in = {static_cast<const Id*>(call.ids),
                       call.rows,
                       call.values,
                       call.count,
                       call.examples,
                       call.unique,
                       call.fill_id,
                       table_rows,
                       {},
                       call.rank,
                       feature,
                       call.kind,
                       call.combiner,
                       call.prune != 0,
                       call.fills != 0};
  for (int d = 0; d + 1 < kMostRank; ++d) in.sizes[d] = call.sizes[d];
  return in;
}

// What a sum of so many vectors is divided by.
WORKBENCH_DEVICE float DivisorOf(Combiner combiner, int64_t count) {
  if (combiner == Combiner::kSum) return 1.0f;
  const float length = static_cast<float>(count);
  return combiner == Combiner::kMean ? length : std::sqrt(length);
}

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_ROWS_EXAMPLES_INL_H_
