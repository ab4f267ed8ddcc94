#include "lookup/grouped/feature_rows.h"

#include <algorithm>
#include <numeric>

#include "instructions/clones.h"

namespace workbench {
namespace {

// Where the first example begins at or behind an id.
template <typename Id>
int64_t NextExample(const FeatureIds<Id>& in, int64_t at) {
  if (at <= 0) return 0;
  while (at < in.count && in.indices[2 * at] == in.indices[2 * (at - 1)]) ++at;
  return std::min(at, in.count);
}

template <typename Id>
int64_t ExamplesOfBlock(const FeatureIds<Id>& in) {
  const int64_t ids = std::max<int64_t>(1, in.count / std::max<int64_t>(1, in.examples));
  return std::max<int64_t>(1, kBlockIds / ids);
}

template <typename Id>
bool Outside(const FeatureIds<Id>& in, int64_t row) {
  return static_cast<uint64_t>(row) >= static_cast<uint64_t>(in.table_rows);
}

// Reads ids of which each example has one, in order, and all of them in the table; false where that
// is not so, which is soon tried: the loop has no branch, and many ids at a time. Without indices
// each id is an example.
template <bool kIndexed, typename Id>
WORKBENCH_INLINE bool ReadInside(const Id* ids, const int64_t* indices, int64_t count,
                                 int64_t begin, int64_t table_rows, int64_t* rows) {
  uint64_t wrong = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = static_cast<int64_t>(ids[i]);
    if constexpr (kIndexed) wrong |= static_cast<uint64_t>(indices[2 * i] ^ (begin + i));
    // The sign of a row below 0, and of what is left of a table that it is beyond.
    const uint64_t left = static_cast<uint64_t>(table_rows) - 1 - static_cast<uint64_t>(row);
    wrong |= (static_cast<uint64_t>(row) | left) >> 63;
    rows[i] = row;
  }
  return wrong == 0;
}

WORKBENCH_CLONES bool OneEach(const int32_t* ids, const int64_t* indices, int64_t count,
                              int64_t begin, int64_t table_rows, int64_t* rows) {
  return indices == nullptr ? ReadInside<false>(ids, indices, count, begin, table_rows, rows)
                            : ReadInside<true>(ids, indices, count, begin, table_rows, rows);
}

WORKBENCH_CLONES bool OneEach(const int64_t* ids, const int64_t* indices, int64_t count,
                              int64_t begin, int64_t table_rows, int64_t* rows) {
  return indices == nullptr ? ReadInside<false>(ids, indices, count, begin, table_rows, rows)
                            : ReadInside<true>(ids, indices, count, begin, table_rows, rows);
}

// Where the ids of a block go that stay.
template <bool kWeighted, typename Id>
struct Kept {
  // Makes room for `ids`, and an id to fill in for each of `examples`.
  Kept(const FeatureIds<Id>& in, int64_t ids, int64_t examples, BlockRows* out) : in(in) {
    out->rows.resize(std::max<int64_t>(out->rows.size(), ids + examples + 1));
    rows = out->rows.data();
    if constexpr (kWeighted) {
      out->weights.resize(out->rows.size());
      out->places.resize(out->rows.size());
      weights = out->weights.data();
      places = out->places.data();
    }
  }

  WORKBENCH_INLINE void Add(int64_t at) {
    const int64_t row = static_cast<int64_t>(in.ids[at]);
    bool stays = !in.prune || row >= 0;
    rows[count] = row;
    if constexpr (kWeighted) {
      // Not "<= 0": a weight that is no number goes too.
      stays = stays && (!in.prune_weights || in.weights[at] > 0);
      weights[count] = in.weights[at];
      places[count] = in.places == nullptr ? static_cast<int32_t>(at) : in.places[at];
    }
    outside |= static_cast<uint64_t>(stays && Outside(in, row));
    count += stays;
  }

  BlockState state() const { return outside ? BlockState::kNoSuchRow : BlockState::kRead; }

  const FeatureIds<Id>& in;
  int64_t* rows;
  float* weights = nullptr;
  int32_t* places = nullptr;
  int64_t count = 0;
  uint64_t outside = 0;
};

// Whether `examples` ids from `from` on are one of each example and in the table, and were read.
template <bool kWeighted, typename Id>
bool ReadOneEach(const FeatureIds<Id>& in, int64_t from, int64_t examples, BlockRows* out) {
  if constexpr (kWeighted) return false;
  const int64_t* indices = in.indices == nullptr ? nullptr : in.indices + 2 * from;
  out->one_each =
      OneEach(in.ids + from, indices, examples, out->begin, in.table_rows, out->rows.data());
  if (out->one_each) std::iota(out->splits.begin(), out->splits.end(), 0);
  return out->one_each;
}

// Ids of a SparseTensor: no branch depends on one, for lengths of examples are not to be guessed.
template <bool kWeighted, typename Id>
BlockState ReadIndexed(const FeatureIds<Id>& in, int64_t block, BlockRows* out) {
  const int64_t from = NextExample(in, block * kBlockIds);
  const int64_t to = NextExample(in, (block + 1) * kBlockIds);
  out->first = from;
  out->begin = block == 0 ? 0 : from == in.count ? in.examples : in.indices[2 * from];
  out->end = to == in.count ? in.examples : in.indices[2 * to];
  if (out->begin < 0 || out->end > in.examples || out->begin > out->end) {
    return BlockState::kUnordered;
  }
  const int64_t examples = out->end - out->begin;
  Kept<kWeighted, Id> kept(in, to - from, examples, out);
  out->splits.assign(examples + 1, 0);
  int32_t* splits = out->splits.data();
  if (to - from == examples && ReadOneEach<kWeighted>(in, from, examples, out)) {
    return BlockState::kRead;
  }
  int64_t before = out->begin;
  for (int64_t i = from; i < to; ++i) {
    const int64_t example = in.indices[2 * i];
    // Before it is used: what comes from a graph may not be believed.
    if (example < before || example >= out->end) return BlockState::kUnordered;
    before = example;
    kept.Add(i);
    splits[example - out->begin + 1] = static_cast<int32_t>(kept.count);
  }
  for (int64_t e = 0; e < examples; ++e) splits[e + 1] = std::max(splits[e + 1], splits[e]);
  return kept.state();
}

template <bool kWeighted, typename Id>
BlockState ReadSplit(const FeatureIds<Id>& in, int64_t block, BlockRows* out) {
  const int64_t size = ExamplesOfBlock(in);
  out->begin = std::min(block * size, in.examples);
  out->end = std::min(out->begin + size, in.examples);
  const int64_t from = in.splits[out->begin], to = in.splits[out->end];
  if (from < 0 || from > to || to > in.count) return BlockState::kUnordered;
  out->first = from;
  const int64_t examples = out->end - out->begin;
  Kept<kWeighted, Id> kept(in, to - from, examples, out);
  out->splits.assign(examples + 1, 0);
  int64_t at = from;
  for (int64_t e = 0; e < examples; ++e) {
    const int64_t last = in.splits[out->begin + e + 1];
    if (last < at || last > to) return BlockState::kUnordered;
    for (; at < last; ++at) kept.Add(at);
    out->splits[e + 1] = static_cast<int32_t>(kept.count);
  }
  return kept.state();
}

// Ids of which each is an example of its own.
template <bool kWeighted, typename Id>
BlockState ReadDense(const FeatureIds<Id>& in, int64_t block, BlockRows* out) {
  out->begin = out->first = std::min(block * kBlockIds, in.count);
  out->end = std::min(out->begin + kBlockIds, in.count);
  const int64_t examples = out->end - out->begin;
  Kept<kWeighted, Id> kept(in, 0, examples, out);
  out->splits.resize(examples + 1);
  if (ReadOneEach<kWeighted>(in, out->begin, examples, out)) return BlockState::kRead;
  int32_t* splits = out->splits.data();
  splits[0] = 0;
  for (int64_t e = 0; e < examples; ++e) {
    kept.Add(out->begin + e);
    splits[e + 1] = static_cast<int32_t>(kept.count);
  }
  return kept.state();
}

// Moves what stands at [from, to) further back by `by`.
template <typename V>
void MoveBack(std::vector<V>* values, int32_t from, int32_t to, int32_t by) {
  const auto begin = values->begin();
  std::copy_backward(begin + from, begin + to, begin + to + by);
}

// Puts fill_id into examples that have none, from the last one on.
template <bool kWeighted>
void Fill(int64_t fill_id, BlockRows* out) {
  int32_t* splits = out->splits.data();
  const int64_t examples = out->end - out->begin;
  int32_t empty = 0;
  for (int64_t e = 0; e < examples; ++e) empty += splits[e] == splits[e + 1];
  for (int64_t e = examples; e > 0 && empty > 0; --e) {
    const int32_t from = splits[e - 1], to = splits[e];
    splits[e] += empty;
    if (from == to) {
      const int32_t at = to + --empty;
      out->rows[at] = fill_id;
      if constexpr (kWeighted) {
        out->weights[at] = 1.0f;
        out->places[at] = -1;
      }
      continue;
    }
    MoveBack(&out->rows, from, to, empty);
    if constexpr (kWeighted) {
      MoveBack(&out->weights, from, to, empty);
      MoveBack(&out->places, from, to, empty);
    }
  }
}

template <bool kWeighted, typename Id>
BlockState ReadAndFill(const FeatureIds<Id>& in, int64_t block, BlockRows* out) {
  out->one_each = false;
  const BlockState state = in.dense               ? ReadDense<kWeighted>(in, block, out)
                           : in.splits != nullptr ? ReadSplit<kWeighted>(in, block, out)
                                                  : ReadIndexed<kWeighted>(in, block, out);
  if (state == BlockState::kRead && in.fills && !out->one_each) {
    Fill<kWeighted>(in.fill_id, out);
    if (Outside(in, in.fill_id) && out->splits.back() > 0) {
      const auto last = out->rows.begin() + out->splits.back();
      if (std::find(out->rows.begin(), last, in.fill_id) != last) return BlockState::kNoSuchRow;
    }
  }
  return state;
}

}  // namespace

template <typename Id>
int64_t CountBlocks(const FeatureIds<Id>& in) {
  if (in.splits == nullptr) return std::max<int64_t>(1, (in.count + kBlockIds - 1) / kBlockIds);
  const int64_t size = ExamplesOfBlock(in);
  return std::max<int64_t>(1, (in.examples + size - 1) / size);
}

template <typename Id>
BlockState ReadBlock(const FeatureIds<Id>& in, int64_t block, BlockRows* out) {
  return in.weights == nullptr ? ReadAndFill<false>(in, block, out)
                               : ReadAndFill<true>(in, block, out);
}

template <typename Id>
int64_t FirstOutside(const FeatureIds<Id>& in, const BlockRows& block, int64_t* id) {
  for (int64_t e = 0; e < block.end - block.begin; ++e) {
    for (int32_t at = block.splits[e]; at < block.splits[e + 1]; ++at) {
      *id = block.rows[at];
      if (Outside(in, *id)) return block.begin + e;
    }
  }
  return -1;
}

#define WORKBENCH_INSTANTIATE(Id)                                                 \
  template int64_t CountBlocks(const FeatureIds<Id>&);                            \
  template BlockState ReadBlock(const FeatureIds<Id>&, int64_t, BlockRows*);      \
  template int64_t FirstOutside(const FeatureIds<Id>&, const BlockRows&, int64_t*)
WORKBENCH_INSTANTIATE(int32_t);
WORKBENCH_INSTANTIATE(int64_t);
#undef WORKBENCH_INSTANTIATE

}  // namespace workbench
