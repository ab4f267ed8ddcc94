#ifndef WORKBENCH_CUDA_ROWS_LOOK_UP_STREAM_INL_H_
#define WORKBENCH_CUDA_ROWS_LOOK_UP_STREAM_INL_H_

// What a group of lanes looks up: the examples that it has, and the rows of those that it takes one
// after the other.

#include <cstdint>

#include "cuda/complaint.h"
#include "cuda/device/portable.h"
#include "cuda/rows/examples_inl.h"

namespace workbench::cuda {

// Of a table; a lane keeps which rows it asks for in 32 bits.
constexpr int64_t kMostStreamRows = INT32_MAX;

template <typename T, typename Id>
struct FeatureLookUp {
  ExampleIds<Id> in;
  const T* table;
  int64_t dim;
  T* out;
  int64_t stride;
};

// A group's examples. Where the ids of each begin and end is in a lane of its own.
struct GroupExamples {
  int32_t begin, count;
  int32_t at_once;  // most that a group has
  PerLane<int32_t> firsts, lasts;
  // A bit for each that is long, or whose ids do not follow those of the one before it.
  uint32_t apart;

  // Of examples from one on the most that are one stream; alone if it is apart.
  WORKBENCH_DEVICE int StreamEnd(int from) const {
    if (from >= count) return from;
    const uint32_t later = (apart | apart << 1) >> from >> 1;
    const int end = from + 1 + LowestBit(later);
    return end < count ? end : count;
  }
};

// Columns [begin + lane * kPack, … + kPack) of each lane.
template <int kPack>
struct LaneColumns {
  int32_t begin, end;

  WORKBENCH_DEVICE int32_t Of(int lane) const { return begin + lane * kPack; }
  WORKBENCH_DEVICE bool Has(int lane) const { return Of(lane) < end; }
  // Some that are there, also of a lane that has none.
  WORKBENCH_DEVICE int32_t Within(int lane) const { return Has(lane) ? Of(lane) : 0; }
};

// The rows of examples [from, to), one at each step. All groups of a warp do what is done here together.
template <typename T, typename Id>
struct RowStream {
  const FeatureLookUp<T, Id>& feature;
  const GroupExamples& examples;
  int from, to;
  int32_t first, ids;  // which these examples have
  int32_t row_bytes;
  PerLane<const T*> table;  // a lane's columns of row 0
  PerLane<T*> out;          // and of the next vector
  // The rows that as many ids as there are lanes ask for, and the ids behind those; below 0 where that
  // is none.
  PerLane<int32_t> rows, next_rows;
  bool lacks = false;  // whether an id of any of the warp's streams asks for no row

  template <int kPack>
  WORKBENCH_DEVICE RowStream(const GroupTogether& group, const FeatureLookUp<T, Id>& of,
                             const GroupExamples& its, const LaneColumns<kPack>& columns, int begin,
                             int end)
      : feature(of), examples(its), from(begin), to(end) {
    first = group.Of(examples.firsts, from);
    const int32_t last = group.Of(examples.lasts, to > 0 ? to - 1 : 0);
    ids = from < to ? last - first : 0;
    row_bytes = static_cast<int32_t>(feature.dim) * static_cast<int32_t>(sizeof(T));
    group.Each([&](int lane) {
      const int64_t example = examples.begin + from;
      table[lane] = feature.table + columns.Within(lane);
      out[lane] = feature.out + example * feature.stride + columns.Within(lane);
      next_rows[lane] = RowAt(lane);
    });
  }

  WORKBENCH_DEVICE int32_t Example() const { return examples.begin + from; }

  // A lane's columns of a row.
  WORKBENCH_DEVICE const T* Row(int lane, int32_t row) const {
    return At(table[lane], row, row_bytes);
  }

  WORKBENCH_DEVICE int32_t RowAt(int32_t step) const {
    return step < ids ? static_cast<int32_t>(feature.in.RowOf(first + step)) : kNoRow;
  }

  // Goes on to the ids from `step` on, a multiple of lanes, and asks for those behind them.
  WORKBENCH_DEVICE void NextIds(const GroupTogether& group, int32_t step, uint64_t* complaint) {
    bool lack = false;
    group.Each([&](int lane) {
      rows[lane] = next_rows[lane];
      lack = lack || (rows[lane] < 0 && step + lane < ids);
      next_rows[lane] = RowAt(step + group.lanes() + lane);
    });
    if (!group.InAny(lack)) return;
    lacks = true;
    WORKBENCH_NO_UNROLL
    for (int e = 0; e < examples.at_once; ++e) {
      const int32_t begin = group.Of(examples.firsts, e), end = group.Of(examples.lasts, e);
      group.Each([&](int lane) {
        const int32_t i = first + step + lane;
        if (rows[lane] != kWrongRow || i < begin || i >= end) return;
        Complain(IdFault::kNoSuchRow, feature.in.feature, examples.begin + e, complaint);
      });
    }
  }

  // The step at which the first example ends; of none there is no such step.
  WORKBENCH_DEVICE int32_t End(const GroupTogether& group) const {
    const int32_t last = group.Of(examples.lasts, from);
    return from < to ? last - first : INT32_MAX;
  }

  // Of ids at steps [begin, end) how many ask for a row.
  WORKBENCH_DEVICE int32_t Count(const GroupTogether& group, int32_t begin, int32_t end) const {
    PerLane<int32_t> found;
    group.Each([&](int lane) {
      for (int32_t step = begin + lane; step < end; step += group.lanes()) {
        found[lane] += feature.in.RowOf(first + step) >= 0 ? 1 : 0;
      }
    });
    return group.Sum(found);
  }
};

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_ROWS_LOOK_UP_STREAM_INL_H_
