#include "lookup/grouped/feature_rows.h"

#include <algorithm>
#include <numeric>

#include "combine/clones.h"

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
// is not so, which is soon tried: the loop has no branch, and many ids at a time.
template <typename Id>
WORKBENCH_INLINE bool ReadOneEach(const Id* ids, const int64_t* indices, int64_t count,
                                  int64_t begin, int64_t table_rows, int64_t* rows) {
  uint64_t wrong = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = static_cast<int64_t>(ids[i]);
    wrong |= static_cast<uint64_t>(indices[2 * i] ^ (begin + i));
    // The sign of a row below 0, and of what is left of a table that it is beyond.
    const uint64_t left = static_cast<uint64_t>(table_rows) - 1 - static_cast<uint64_t>(row);
    wrong |= (static_cast<uint64_t>(row) | left) >> 63;
    rows[i] = row;
  }
  return wrong == 0;
}

WORKBENCH_CLONES bool OneEach(const int32_t* ids, const int64_t* indices, int64_t count,
                              int64_t begin, int64_t table_rows, int64_t* rows) {
  return ReadOneEach(ids, indices, count, begin, table_rows, rows);
}

WORKBENCH_CLONES bool OneEach(const int64_t* ids, const int64_t* indices, int64_t count,
                              int64_t begin, int64_t table_rows, int64_t* rows) {
  return ReadOneEach(ids, indices, count, begin, table_rows, rows);
}

// Ids of a SparseTensor: no branch depends on one, for lengths of examples are not to be guessed.
template <typename Id>
BlockState ReadIndexed(const FeatureIds<Id>& in, int64_t block, BlockRows* out) {
  const int64_t from = NextExample(in, block * kBlockIds);
  const int64_t to = NextExample(in, (block + 1) * kBlockIds);
  out->begin = block == 0 ? 0 : from == in.count ? in.examples : in.indices[2 * from];
  out->end = to == in.count ? in.examples : in.indices[2 * to];
  if (out->begin < 0 || out->end > in.examples || out->begin > out->end) {
    return BlockState::kUnordered;
  }
  const int64_t examples = out->end - out->begin;
  out->rows.resize(std::max<int64_t>(out->rows.size(), to - from + examples + 1));
  out->splits.assign(examples + 1, 0);
  int64_t* rows = out->rows.data();
  int32_t* splits = out->splits.data();
  if (to - from == examples && OneEach(in.ids + from, in.indices + 2 * from, examples, out->begin,
                                       in.table_rows, rows)) {
    std::iota(out->splits.begin(), out->splits.end(), 0);
    return BlockState::kRead;
  }
  int64_t before = out->begin, kept = 0;
  bool ordered = true;
  uint64_t outside = 0;
  for (int64_t i = from; i < to; ++i) {
    const int64_t example = in.indices[2 * i];
    // Before it is used: what comes from a graph may not be believed.
    if (example < before || example >= out->end) {
      ordered = false;
      break;
    }
    before = example;
    const int64_t row = static_cast<int64_t>(in.ids[i]);
    const bool stays = !in.prune || row >= 0;
    rows[kept] = row;
    outside |= static_cast<uint64_t>(stays && Outside(in, row));
    kept += stays;
    splits[example - out->begin + 1] = static_cast<int32_t>(kept);
  }
  if (!ordered) return BlockState::kUnordered;
  for (int64_t e = 0; e < examples; ++e) splits[e + 1] = std::max(splits[e + 1], splits[e]);
  return outside ? BlockState::kNoSuchRow : BlockState::kRead;
}

template <typename Id>
BlockState ReadSplit(const FeatureIds<Id>& in, int64_t block, BlockRows* out) {
  const int64_t size = ExamplesOfBlock(in);
  out->begin = std::min(block * size, in.examples);
  out->end = std::min(out->begin + size, in.examples);
  const int64_t from = in.splits[out->begin], to = in.splits[out->end];
  if (from < 0 || from > to || to > in.count) return BlockState::kUnordered;
  const int64_t examples = out->end - out->begin;
  out->rows.resize(std::max<int64_t>(out->rows.size(), to - from + examples + 1));
  out->splits.assign(examples + 1, 0);
  int64_t* rows = out->rows.data();
  int64_t at = from, kept = 0;
  uint64_t outside = 0;
  for (int64_t e = 0; e < examples; ++e) {
    const int64_t last = in.splits[out->begin + e + 1];
    if (last < at || last > to) return BlockState::kUnordered;
    for (; at < last; ++at) {
      const int64_t row = static_cast<int64_t>(in.ids[at]);
      const bool stays = !in.prune || row >= 0;
      rows[kept] = row;
      outside |= static_cast<uint64_t>(stays && Outside(in, row));
      kept += stays;
    }
    out->splits[e + 1] = static_cast<int32_t>(kept);
  }
  return outside ? BlockState::kNoSuchRow : BlockState::kRead;
}

// Ids of which each is an example of its own.
template <typename Id>
BlockState ReadDense(const FeatureIds<Id>& in, int64_t block, BlockRows* out) {
  out->begin = std::min(block * kBlockIds, in.count);
  out->end = std::min(out->begin + kBlockIds, in.count);
  const int64_t examples = out->end - out->begin;
  out->rows.resize(std::max<int64_t>(out->rows.size(), examples + 1));
  out->splits.resize(examples + 1);
  int64_t* rows = out->rows.data();
  int32_t* splits = out->splits.data();
  int64_t kept = 0;
  uint64_t outside = 0;
  splits[0] = 0;
  for (int64_t e = 0; e < examples; ++e) {
    const int64_t row = static_cast<int64_t>(in.ids[out->begin + e]);
    const bool stays = !in.prune || row >= 0;
    rows[kept] = row;
    outside |= static_cast<uint64_t>(stays && Outside(in, row));
    kept += stays;
    splits[e + 1] = static_cast<int32_t>(kept);
  }
  return outside ? BlockState::kNoSuchRow : BlockState::kRead;
}

// Puts fill_id into examples that have none, from the last one on.
void Fill(int64_t fill_id, BlockRows* out) {
  int32_t* splits = out->splits.data();
  const int64_t examples = out->end - out->begin;
  int32_t empty = 0;
  for (int64_t e = 0; e < examples; ++e) empty += splits[e] == splits[e + 1];
  int64_t* rows = out->rows.data();
  for (int64_t e = examples; e > 0 && empty > 0; --e) {
    const int32_t from = splits[e - 1], to = splits[e];
    splits[e] += empty;
    if (from == to) {
      rows[to + --empty] = fill_id;
    } else {
      std::copy_backward(rows + from, rows + to, rows + to + empty);
    }
  }
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
  const BlockState state = in.dense               ? ReadDense(in, block, out)
                           : in.splits != nullptr ? ReadSplit(in, block, out)
                                                  : ReadIndexed(in, block, out);
  if (state == BlockState::kRead && in.fills) {
    Fill(in.fill_id, out);
    if (Outside(in, in.fill_id) && out->splits.back() > 0) {
      const auto last = out->rows.begin() + out->splits.back();
      if (std::find(out->rows.begin(), last, in.fill_id) != last) return BlockState::kNoSuchRow;
    }
  }
  return state;
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
