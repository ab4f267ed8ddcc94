#include "combine/usual_widths.h"

#include <algorithm>

#include "instructions/prefetch.h"
#include "instructions/vectors.h"

namespace workbench::combine {
namespace {

// Where the vectors of a lookup lie.
enum class Place { kTable, kFetchedTable, kAnywhere };

template <int64_t kDim, Place kPlace>
WORKBENCH_INLINE void CombineTable(const LookedUp<float>& in, int64_t begin, int64_t end,
                                   float* out) {
  constexpr int64_t kBytes = kDim * sizeof(float);
  // Copies, for what is written to `out` might change those that `in` points to.
  const float* const* const vectors = in.vectors;
  const float* const table = kPlace == Place::kAnywhere ? nullptr : in.shards[0];
  const int64_t* const table_row = in.table_row;
  const int32_t* const splits = in.splits;
  const Combiner combiner = in.combiner;
  const auto at = [&](int32_t id) WORKBENCH_INLINED {
    return kPlace == Place::kAnywhere ? vectors[id] : table + table_row[id] * kDim;
  };
  const int32_t last = splits[in.rows] - 1;
  const int64_t stride = in.stride == 0 ? kDim : in.stride;
  for (int64_t row = begin; row < end; ++row) {
    const int32_t first = splits[row], until = splits[row + 1];
    float* const to = out + row * stride;
    if (IsLong(splits, row)) {
      CombineLong(in, row, to);
      continue;
    }
    // Vectors, for of an array of floats the compiler may add one by one.
    Vector sums[kDim / kLanes] = {};
    for (int32_t id = first; id < until; ++id) {
      if constexpr (kPlace == Place::kTable) {
        Prefetch<2>(at(std::min(id + kFarAhead, last)), kBytes);
      }
      Prefetch<3>(at(std::min(id + kAhead, last)), kBytes);
      const Vector* const vector = reinterpret_cast<const Vector*>(at(id));
      for (int64_t v = 0; v < kDim / kLanes; ++v) sums[v] += vector[v];
    }
    const float divisor = DivisorOf(combiner, static_cast<float>(until - first));
    Vector* const result = reinterpret_cast<Vector*>(to);
    if (divisor == 1 || first == until) {
      for (int64_t v = 0; v < kDim / kLanes; ++v) result[v] = sums[v];
    } else {
      for (int64_t v = 0; v < kDim / kLanes; ++v) result[v] = sums[v] / divisor;
    }
  }
}

// Rows of a table, of which each is a combined one by itself, whatever the combiner.
template <int64_t kDim>
WORKBENCH_INLINE void CopyTable(const LookedUp<float>& in, int64_t begin, int64_t end, float* out) {
  constexpr int64_t kBytes = kDim * sizeof(float);
  const float* const table = in.shards[0];
  const int64_t* const table_row = in.table_row;
  const int64_t stride = in.stride == 0 ? kDim : in.stride;
  const int64_t last = in.rows - 1;
  for (int64_t row = begin; row < end; ++row) {
    Prefetch<2>(table + table_row[std::min(row + kFarAhead, last)] * kDim, kBytes);
    Prefetch<3>(table + table_row[std::min(row + kAhead, last)] * kDim, kBytes);
    const Vector* const from = reinterpret_cast<const Vector*>(table + table_row[row] * kDim);
    Vector* const to = reinterpret_cast<Vector*>(out + row * stride);
    // As a sum that begins with 0 has it: -0 becomes 0.
    for (int64_t v = 0; v < kDim / kLanes; ++v) to[v] = from[v] + 0.0f;
  }
}

template <int64_t kDim>
WORKBENCH_INLINE void CombineOfWidth(const LookedUp<float>& in, int64_t begin, int64_t end,
                                     float* out) {
  // What lies anywhere was fetched when it was found.
  if (in.vectors != nullptr) return CombineTable<kDim, Place::kAnywhere>(in, begin, end, out);
  if (in.one_each) return CopyTable<kDim>(in, begin, end, out);
  if (in.fetched) return CombineTable<kDim, Place::kFetchedTable>(in, begin, end, out);
  CombineTable<kDim, Place::kTable>(in, begin, end, out);
}

// A function each: in one of them all, what its loops need does not stay in registers.
#define WORKBENCH_COMBINE_WIDTH(dim)                                                            \
  WORKBENCH_CLONES void Combine##dim(const LookedUp<float>& in, int64_t begin, int64_t end,     \
                                     float* out) {                                              \
    CombineOfWidth<dim>(in, begin, end, out);                                                   \
  }
WORKBENCH_COMBINE_WIDTH(8)
WORKBENCH_COMBINE_WIDTH(16)
WORKBENCH_COMBINE_WIDTH(32)
WORKBENCH_COMBINE_WIDTH(64)
WORKBENCH_COMBINE_WIDTH(128)
#undef WORKBENCH_COMBINE_WIDTH

}  // namespace

bool CombinedWidth(const LookedUp<float>& in, int64_t begin, int64_t end, float* out) {
  switch (in.dim) {
    case 8: Combine8(in, begin, end, out); return true;
    case 16: Combine16(in, begin, end, out); return true;
    case 32: Combine32(in, begin, end, out); return true;
    case 64: Combine64(in, begin, end, out); return true;
    case 128: Combine128(in, begin, end, out); return true;
  }
  return false;
}

}  // namespace workbench::combine
