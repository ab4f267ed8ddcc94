#ifndef WORKBENCH_CUDA_ROWS_LOOK_UP_BODY_INL_H_
#define WORKBENCH_CUDA_ROWS_LOOK_UP_BODY_INL_H_

// The forward direction: a group of lanes for some examples of a feature, one behind the other. Their
// rows are one stream, so that the memory is busy with those of the next example while those of this
// one are added.

#include <cstdint>

#include "cuda/calls.h"
#include "cuda/device/portable.h"
#include "cuda/device/scalars.h"
#include "cuda/rows/examples_inl.h"

namespace workbench::cuda {

// A row of more ids is summed in double, as on a CPU.
constexpr int64_t kLongRow = 1024;

// Rows that a group asks the memory for before it adds the first: more take registers, and so groups
// from the GPU.
constexpr int kRowsAtOnce = 4;

template <typename T, typename Id>
struct FeatureLookUp {
  ExampleIds<Id> in;
  const T* table;
  int64_t dim;
  T* out;
  int64_t stride;
};

template <typename T, typename Id, int kPack>
struct LookUpBody {
  FeatureLookUp<T, Id> features[kFeaturesAtOnce];
  FeatureEnds ends;
  int64_t at_once;  // examples of a group; no more than it has lanes
  uint64_t* complaint;

  // Where the ids of the examples begin and end, in a lane for each.
  struct Examples {
    int64_t begin;
    PerLane<int32_t> firsts, lasts;
    // A bit for each that is long, or whose ids do not follow those of the one before it.
    uint32_t apart;

    // Of examples [from, to) from one on the most that are one stream; alone if it is apart.
    WORKBENCH_DEVICE int StreamEnd(int from, int to) const {
      const uint32_t later = (apart | apart << 1) >> from >> 1;
      const int end = from + 1 + LowestBit(later);
      return end < to ? end : to;
    }
  };

  // Columns [begin + lane * kPack, … + kPack) of each lane.
  struct Columns {
    int64_t begin, end;

    WORKBENCH_DEVICE int64_t Of(int lane) const { return begin + lane * kPack; }
    WORKBENCH_DEVICE bool Has(int lane) const { return Of(lane) < end; }
    // Some that are there, also of a lane that has none.
    WORKBENCH_DEVICE int64_t Within(int lane) const { return Has(lane) ? Of(lane) : 0; }
  };

  struct Sums {
    float at[kPack];
  };

  struct Rows {
    Pack<T, kPack> at[kRowsAtOnce];

    // Nothing need be there.
    WORKBENCH_DEVICE Rows() {}
  };

  WORKBENCH_DEVICE void operator()(const Group& group, int64_t number) const {
    const int f = ends.FeatureOf(number);
    const FeatureLookUp<T, Id>& feature = features[f];
    Examples examples;
    examples.begin = (number - (f == 0 ? 0 : ends.at[f - 1])) * at_once;
    const int64_t left = feature.in.examples - examples.begin;
    const int count = static_cast<int>(left < at_once ? left : at_once);
    PerLane<bool> apart;
    group.Each([&](int lane) {
      if (lane >= count) return;
      int64_t first = 0, last = 0;
      const bool found = feature.in.Find(examples.begin + lane, &first, &last, complaint);
      // There are fewer ids than that.
      examples.firsts[lane] = static_cast<int32_t>(first);
      examples.lasts[lane] = static_cast<int32_t>(last);
      apart[lane] = !found || last - first > kLongRow;
    });
    examples.apart = group.Bits(apart);
    if (feature.in.kind == RowsKind::kIndices) {
      for (int e = 0; e < count; ++e) {
        feature.in.Check(group, examples.begin + e, group.Of(examples.firsts, e),
                         group.Of(examples.lasts, e), complaint);
      }
    }
    for (Columns columns = {0, feature.dim}; columns.begin < columns.end;
         columns.begin += group.lanes() * kPack) {
      Combine(group, feature, examples, count, columns);
    }
  }

  // Combines examples together, as far as they are one stream.
  WORKBENCH_DEVICE void Combine(const Group& group, const FeatureLookUp<T, Id>& feature,
                                const Examples& examples, int count,
                                const Columns& columns) const {
    for (int from = 0; from < count;) {
      const int32_t first = group.Of(examples.firsts, from);
      const int32_t last = group.Of(examples.lasts, from);
      const int to = examples.StreamEnd(from, count);
      if (last - first > kLongRow) {
        CombineLong(group, feature, examples.begin + from, first, last, columns);
      } else {
        CombineShort(group, feature, examples, from, to, columns);
      }
      from = to;
    }
  }

  // Without a branch around a load, and with one place that writes vectors: the loop stays small.
  WORKBENCH_DEVICE void CombineShort(const Group& group, const FeatureLookUp<T, Id>& feature,
                                     const Examples& examples, int from, int to,
                                     const Columns& columns) const {
    PerLane<Sums> sums;
    int32_t added = 0;
    int32_t end = group.Of(examples.lasts, from);
    const int32_t last = group.Of(examples.lasts, to - 1);
    int32_t i = group.Of(examples.firsts, from);
    do {
      // Where the rows of as many ids as there are lanes begin; of what is none, that of row 0.
      PerLane<int64_t> begins;
      PerLane<bool> good, bad;
      group.Each([&](int lane) {
        const int64_t row = i + lane < last ? feature.in.RowOf(i + lane) : kNoRow;
        begins[lane] = row < 0 ? 0 : row * feature.dim;
        good[lane] = row >= 0;
        bad[lane] = row == kWrongRow;
      });
      const uint32_t there = group.Bits(good), wrong = group.Bits(bad);
      if (wrong != 0) ComplainOf(group, feature, examples, from, i, wrong);
      const int32_t chunk_end = last - i < group.lanes() ? last : i + group.lanes();
      int32_t at = i;
      do {
        PerLane<Rows> rows;
        if (there != 0) {
          WORKBENCH_UNROLL
          for (int r = 0; r < kRowsAtOnce; ++r) {
            const int64_t begin = group.Of(begins, at + r < chunk_end ? at + r - i : 0);
            group.Each([&](int lane) {
              rows[lane].at[r] = Load<T, kPack>(feature.table + begin + columns.Within(lane));
            });
          }
        }
        const int32_t batch = at;
        const int32_t stop = chunk_end - at < kRowsAtOnce ? chunk_end : at + kRowsAtOnce;
        for (;;) {
          const int32_t until = end < stop ? end : stop;
          // Those of this example, a bit for each row.
          const uint32_t here = (1u << (until - batch)) - (1u << (at - batch));
          const uint32_t its = there >> (batch - i) & here;
          added += CountBits(its);
          group.Each([&](int lane) {
            WORKBENCH_UNROLL
            for (int r = 0; r < kRowsAtOnce; ++r) {
              if ((its >> r & 1) == 0) continue;
              WORKBENCH_UNROLL
              for (int c = 0; c < kPack; ++c) sums[lane].at[c] += ToFloat(rows[lane].at[r].at[c]);
            }
          });
          at = until;
          if (end > stop) break;
          Write(group, feature, examples.begin + from, columns, added, true, &sums);
          if (++from == to) return;
          added = 0;
          end = group.Of(examples.lasts, from);
        }
      } while (at < chunk_end);
      i += group.lanes();
    } while (i < last);
  }

  // Of ids [i, i + 32), a bit for each.
  WORKBENCH_DEVICE void ComplainOf(const Group& group, const FeatureLookUp<T, Id>& feature,
                                   const Examples& examples, int from, int32_t i,
                                   uint32_t wrong) const {
    for (; wrong != 0; ++i, wrong >>= 1) {
      while (i >= group.Of(examples.lasts, from)) ++from;
      if ((wrong & 1) == 0) continue;
      Complain(Wrong::kNoSuchRow, feature.in.feature, examples.begin + from, complaint);
    }
  }

  // There are few of these, and they may not take registers from the others: a column at a time.
  WORKBENCH_DEVICE void CombineLong(const Group& group, const FeatureLookUp<T, Id>& feature,
                                    int64_t example, int32_t first, int32_t last,
                                    const Columns& columns) const {
    PerLane<Sums> sums;
    int32_t added = 0;
    WORKBENCH_NO_UNROLL
    for (int c = 0; c < kPack; ++c) {
      PerLane<double> sum;
      added = 0;
      WORKBENCH_NO_UNROLL
      for (int32_t i = first; i < last; ++i) {
        const int64_t row = feature.in.RowOf(i, example, complaint);
        if (row < 0) continue;
        ++added;
        group.Each([&](int lane) {
          if (!columns.Has(lane)) return;
          sum[lane] += ToFloat(feature.table[row * feature.dim + columns.Of(lane) + c]);
        });
      }
      const float divisor = DivisorOf(feature.in.combiner, added > 0 ? added : 1);
      // Rounded once, as on a CPU.
      group.Each([&](int lane) { Place(static_cast<float>(sum[lane] / divisor), c, &sums[lane]); });
    }
    Write(group, feature, example, columns, added, false, &sums);
  }

  // sums->at[c] = value, without an index that is known to nobody before it runs.
  static WORKBENCH_DEVICE void Place(float value, int c, Sums* sums) {
    WORKBENCH_UNROLL
    for (int other = 0; other < kPack; ++other) {
      if (other == c) sums->at[other] = value;
    }
  }

  // Writes an example's vector, and begins another one's.
  WORKBENCH_DEVICE void Write(const Group& group, const FeatureLookUp<T, Id>& feature,
                              int64_t example, const Columns& columns, int32_t added,
                              bool divides, PerLane<Sums>* sums) const {
    const int64_t fill = added > 0 ? kNoRow : feature.in.FillRow(example, complaint);
    const float divisor = divides && added > 0 ? DivisorOf(feature.in.combiner, added) : 1.0f;
    group.Each([&](int lane) {
      if (!columns.Has(lane)) return;
      Pack<T, kPack> out;
      if (fill >= 0) {
        out = Load<T, kPack>(feature.table + fill * feature.dim + columns.Of(lane));
      } else {
        WORKBENCH_UNROLL
        for (int c = 0; c < kPack; ++c) {
          // Often it is 1, and a division takes many instructions.
          const float sum = (*sums)[lane].at[c];
          Set(divisor == 1.0f ? sum : sum / divisor, &out.at[c]);
        }
      }
      Store(out, feature.out + example * feature.stride + columns.Of(lane));
      (*sums)[lane] = {};
    });
  }
};

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_ROWS_LOOK_UP_BODY_INL_H_
