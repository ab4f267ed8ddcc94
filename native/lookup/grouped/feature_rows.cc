#include "lookup/grouped/feature_rows.h"

#include <algorithm>
#include <numeric>

#include "instructions/clones.h"
#include "instructions/prefetch.h"
#include "lookup/id_checks.h"

namespace workbench {
namespace {

// Ids that the memory is asked for ahead. They follow each other, but a processor that waits for
// rows does not get to guess that.
constexpr int64_t kIdsAhead = 128;

// Where the first example begins at or behind an id; anywhere behind it where ids are unordered.
// Examples are short, mostly; of a long one every block looks for the end, so that it must not be
// walked through.
template <typename Id>
int64_t NextExample(const FeatureIds<Id>& in, int64_t at) {
  if (at <= 0) return 0;
  if (at >= in.count) return in.count;
  const int64_t example = in.indices[2 * (at - 1)];
  const auto belongs = [&](int64_t id) { return in.indices[2 * id] == example; };
  int64_t step = 1;
  while (at < in.count && belongs(at)) {
    at += step;
    step *= 2;
  }
  // What was jumped over last, where the end is.
  int64_t first = at - step / 2 + 1, last = std::min(at, in.count);
  while (first < last) {
    const int64_t middle = first + (last - first) / 2;
    if (belongs(middle)) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return last;
}

template <typename Id>
int64_t ExamplesOfBlock(const FeatureIds<Id>& in) {
  const int64_t ids = std::max<int64_t>(1, in.count / std::max<int64_t>(1, in.examples));
  return std::max<int64_t>(1, in.block_ids / ids);
}

template <typename Id>
bool Outside(const FeatureIds<Id>& in, int64_t row) {
  return static_cast<uint64_t>(row) >= static_cast<uint64_t>(in.table_rows);
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

  // Whether the ids [at, at + number) all stay and are in the table, and were added.
  WORKBENCH_INLINE bool AddAll(int64_t at, int64_t number) {
    if constexpr (kWeighted) return false;
    if (!AllInside(in.ids + at, number, in.table_rows, rows + count)) return false;
    count += number;
    return true;
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

  // Asks the memory for the rows that were added since the last time. They need not exist.
  WORKBENCH_INLINE void Fetch(const FetchedTable& table) {
    const uint64_t begin = reinterpret_cast<uint64_t>(table.begin);
    const uint64_t bytes = static_cast<uint64_t>(table.row_bytes);
    for (const int64_t until = std::min(count, table.ids); fetched < until; ++fetched) {
      const uint64_t at = begin + static_cast<uint64_t>(rows[fetched]) * bytes;
      Prefetch<2>(reinterpret_cast<const void*>(at), table.row_bytes);
    }
  }

  BlockState state() const { return outside ? BlockState::kNoSuchRow : BlockState::kRead; }

  const FeatureIds<Id> in;
  int64_t* rows;
  float* weights = nullptr;
  int32_t* places = nullptr;
  int64_t count = 0;
  int64_t fetched = 0;
  uint64_t outside = 0;
};

// Whether ids from `from` on, of which each example has one, all stay and are in the table, and were
// read. Their rows are not asked for: copying them takes no longer than asking.
template <bool kWeighted, typename Id>
bool ReadOneEach(Kept<kWeighted, Id>* kept, int64_t from, BlockRows* out) {
  out->one_each = kept->AddAll(from, out->end - out->begin);
  if (out->one_each) std::iota(out->splits.begin(), out->splits.end(), 0);
  return out->one_each;
}

// Ids of a SparseTensor: no branch depends on one that stays, for lengths of examples are not to be
// guessed.
template <bool kWeighted, typename Id>
BlockState ReadIndexed(const FeatureIds<Id>& in, int64_t block, const FetchedTable& fetched,
                       BlockRows* out) {
  const int64_t from = NextExample(in, block * in.block_ids);
  const int64_t to = NextExample(in, (block + 1) * in.block_ids);
  // Where the next block will look for its end.
  Prefetch<3>(in.indices + 2 * (block + 2) * in.block_ids, 1);
  if (from > to) return BlockState::kUnordered;
  out->first = from;
  out->begin = block == 0 ? 0 : from == in.count ? in.examples : in.indices[2 * from];
  out->end = to == in.count ? in.examples : in.indices[2 * to];
  if (out->begin < 0 || out->end > in.examples || out->begin > out->end) {
    return BlockState::kUnordered;
  }
  const int64_t begin = out->begin, examples = out->end - begin;
  Kept<kWeighted, Id> kept(in, to - from, examples, out);
  out->splits.assign(examples + 1, 0);
  if (to - from == examples && IndicesCount(in.indices + 2 * from, examples, begin) &&
      ReadOneEach(&kept, from, out)) {
    return BlockState::kRead;
  }
  int32_t* const after = out->splits.data() + 1;
  int64_t number = 0, before = begin;
  for (int64_t at = from; at < to; at += number) {
    number = std::min(kChunkIds, to - at);
    const int64_t* const indices = in.indices + 2 * at;
    Prefetch<3>(in.ids + at + kIdsAhead, number * static_cast<int64_t>(sizeof(Id)));
    Prefetch<3>(indices + 2 * kIdsAhead, number * 2 * static_cast<int64_t>(sizeof(int64_t)));
    // Before they are used: what comes from a graph may not be believed.
    if (!InOrder(indices, number, before, out->end)) return BlockState::kUnordered;
    before = indices[2 * (number - 1)];
    int32_t count = static_cast<int32_t>(kept.count);
    if (kept.AddAll(at, number)) {
      for (int64_t i = 0; i < number; ++i) after[indices[2 * i] - begin] = ++count;
    } else {
      for (int64_t i = 0; i < number; ++i) {
        kept.Add(at + i);
        after[indices[2 * i] - begin] = static_cast<int32_t>(kept.count);
      }
    }
    kept.Fetch(fetched);
  }
  for (int64_t e = 1; e < examples; ++e) after[e] = std::max(after[e], after[e - 1]);
  return kept.state();
}

template <bool kWeighted, typename Id>
BlockState ReadSplit(const FeatureIds<Id>& in, int64_t block, const FetchedTable& fetched,
                     BlockRows* out) {
  const int64_t size = ExamplesOfBlock(in);
  out->begin = std::min(block * size, in.examples);
  out->end = std::min(out->begin + size, in.examples);
  const int64_t* const ends = in.splits + out->begin + 1;
  const int64_t from = in.splits[out->begin], to = in.splits[out->end];
  if (from < 0 || from > to || to > in.count) return BlockState::kUnordered;
  out->first = from;
  const int64_t examples = out->end - out->begin;
  Kept<kWeighted, Id> kept(in, to - from, examples, out);
  out->splits.assign(examples + 1, 0);
  if (to - from == examples && SplitsCount(ends - 1, examples, from) &&
      ReadOneEach(&kept, from, out)) {
    return BlockState::kRead;
  }
  int32_t* const after = out->splits.data() + 1;
  int64_t at = from;
  for (int64_t e = 0; e < examples; ++e) {
    const int64_t end = ends[e];
    if (end < at || end > to) return BlockState::kUnordered;
    for (; at < end; ++at) kept.Add(at);
    after[e] = static_cast<int32_t>(kept.count);
    kept.Fetch(fetched);
  }
  return kept.state();
}

// Ids of which each is an example of its own.
template <bool kWeighted, typename Id>
BlockState ReadDense(const FeatureIds<Id>& in, int64_t block, const FetchedTable& fetched,
                     BlockRows* out) {
  out->begin = out->first = std::min(block * in.block_ids, in.count);
  out->end = std::min(out->begin + in.block_ids, in.count);
  const int64_t examples = out->end - out->begin;
  Kept<kWeighted, Id> kept(in, 0, examples, out);
  out->splits.resize(examples + 1);
  if (ReadOneEach(&kept, out->begin, out)) return BlockState::kRead;
  int32_t* splits = out->splits.data();
  splits[0] = 0;
  for (int64_t e = 0; e < examples; ++e) {
    kept.Add(out->begin + e);
    splits[e + 1] = static_cast<int32_t>(kept.count);
  }
  kept.Fetch(fetched);
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
BlockState ReadAndFill(const FeatureIds<Id>& in, int64_t block, const FetchedTable& fetched,
                       BlockRows* out) {
  out->one_each = false;
  const BlockState state = in.dense ? ReadDense<kWeighted>(in, block, fetched, out)
                           : in.splits != nullptr
                               ? ReadSplit<kWeighted>(in, block, fetched, out)
                               : ReadIndexed<kWeighted>(in, block, fetched, out);
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
  if (in.splits == nullptr) {
    return std::max<int64_t>(1, (in.count + in.block_ids - 1) / in.block_ids);
  }
  const int64_t size = ExamplesOfBlock(in);
  return std::max<int64_t>(1, (in.examples + size - 1) / size);
}

template <typename Id>
BlockState ReadBlock(const FeatureIds<Id>& in, int64_t block, BlockRows* out,
                     const FetchedTable& fetched) {
  return in.weights == nullptr ? ReadAndFill<false>(in, block, fetched, out)
                               : ReadAndFill<true>(in, block, fetched, out);
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
  template BlockState ReadBlock(const FeatureIds<Id>&, int64_t, BlockRows*,       \
                                const FetchedTable&);                             \
  template int64_t FirstOutside(const FeatureIds<Id>&, const BlockRows&, int64_t*)
WORKBENCH_INSTANTIATE(int32_t);
WORKBENCH_INSTANTIATE(int64_t);
#undef WORKBENCH_INSTANTIATE

}  // namespace workbench
