#include "combine/combine.h"

#include <vector>

#include "combine/combine_inl.h"

namespace workbench {
namespace {

std::string Text(int64_t value) { return std::to_string(value); }

}  // namespace

std::string Misfit(const Sizes& sizes, int64_t rows, const int32_t* splits, const int32_t* index,
                   const int32_t* permutation) {
  int32_t before = 0;
  bool ordered = splits[0] == 0 && splits[rows] == sizes.ids;
  for (int64_t r = 0; r <= rows; ++r) {
    ordered &= splits[r] >= before;
    before = splits[r];
  }
  if (!ordered) {
    return "row_splits must begin at 0, never fall and end at " + Text(sizes.ids) +
           ", the number of ids";
  }
  if (index == nullptr && sizes.ids != sizes.unique) {
    return Text(sizes.unique) + " vectors were looked up for " + Text(sizes.ids) + " ids";
  }
  uint32_t largest = 0;
  for (int64_t i = 0; index != nullptr && i < sizes.ids; ++i) {
    largest = index[i] < 0 ? UINT32_MAX : std::max<uint32_t>(largest, index[i]);
    if (largest >= sizes.unique) {
      return "unique_index[" + Text(i) + "] is " + Text(index[i]) + ", outside the " +
             Text(sizes.unique) + " unique ids";
    }
  }
  if (sizes.unique == 0) return "";
  if (permutation == nullptr) {
    if (sizes.shards == 1 && sizes.unique == sizes.vectors[0]) return "";
    return Text(sizes.vectors[0]) + " vectors in " + Text(sizes.shards) + " shards for " +
           Text(sizes.unique) + " ids, without a permutation";
  }
  for (int64_t i = 0; i < sizes.unique; ++i) {
    const int32_t shard = permutation[2 * i], at = permutation[2 * i + 1];
    if (shard < 0 || shard >= sizes.shards || at < 0 || at >= sizes.vectors[shard]) {
      return "permutation[" + Text(i) + "] is [" + Text(shard) + ", " + Text(at) +
             "], where no shard has a vector";
    }
  }
  return "";
}

std::string SharedVector(const Sizes& sizes, const int32_t* permutation) {
  std::vector<int64_t> starts(sizes.shards + 1, 0);
  for (int s = 0; s < sizes.shards; ++s) starts[s + 1] = starts[s] + sizes.vectors[s];
  std::vector<bool> taken(starts.back(), false);
  for (int64_t i = 0; i < sizes.unique; ++i) {
    const int32_t shard = permutation[2 * i], at = permutation[2 * i + 1];
    if (taken[starts[shard] + at]) {
      return "permutation[" + Text(i) + "] is [" + Text(shard) + ", " + Text(at) +
             "], which another id has; expected each vector once";
    }
    taken[starts[shard] + at] = true;
  }
  return "";
}

void RowFactors(const LookedUp<float>& in, int64_t begin, int64_t end, float* out) {
  for (int64_t row = begin; row < end; ++row) out[row - begin] = combine::Factor(in, row);
}

WORKBENCH_CLONES void combine::CombineLong(const LookedUp<float>& in, int64_t row, float* out) {
  CombineRow<double>(in, row, out);
}

WORKBENCH_COMBINE_FOR(float)

WORKBENCH_CLONES void SumGradientsAndSquares(const TouchedRows<float>& in, int64_t begin, int64_t end,
                                             float* out) {
  combine::SumGradients<true>(in, begin, end, out);
}

}  // namespace workbench
