#ifndef WORKBENCH_CUDA_ROWS_LOOK_UP_BODY_INL_H_
#define WORKBENCH_CUDA_ROWS_LOOK_UP_BODY_INL_H_

// The forward direction: a group of lanes for some examples of a feature, one behind the other. Their
// rows are one stream, so that the memory is busy with those of the next example while those of this
// one are added. All groups of a warp take a row of their streams at each step: a warp whose groups
// went their own ways would run each one's instructions one after the other.

#include <cstdint>

#include "cuda/calls.h"
#include "cuda/device/portable.h"
#include "cuda/device/row_ring_inl.h"
#include "cuda/device/scalars.h"
#include "cuda/rows/examples_inl.h"
#include "cuda/rows/look_up/stream_inl.h"

namespace workbench::cuda {

// Rows of a group that are on their way; more take room that groups want.
constexpr int kSlots = 8;
// Of those that are copied, which wait in registers.
constexpr int kCopiedAtOnce = 4;

template <typename T, typename Id, int kPack>
struct LookUpBody {
  using Feature = FeatureLookUp<T, Id>;
  using Columns = LaneColumns<kPack>;
  using Stream = RowStream<T, Id>;

  Feature features[kFeaturesAtOnce];
  FeatureEnds ends;
  int32_t at_once;  // examples of a group; no more than it has lanes
  uint64_t* complaint;

  struct Sums {
    float at[kPack];
  };

  struct Rows {
    Pack<T, kPack> at[kCopiedAtOnce];

    // Nothing need be there.
    WORKBENCH_DEVICE Rows() {}
  };

  WORKBENCH_DEVICE void operator()(const GroupTogether& group, int64_t number, bool there) const {
    const int32_t mine = static_cast<int32_t>(number);
    const int f = ends.FeatureOf(mine);
    const Feature& feature = features[f];
    GroupExamples examples;
    examples.begin = (mine - ends.Begin(f)) * at_once;
    examples.at_once = at_once;
    const int64_t left = there ? feature.in.examples - examples.begin : 0;
    examples.count = left < at_once ? static_cast<int>(left) : at_once;
    PerLane<bool> apart, several;
    group.Each([&](int lane) {
      if (lane >= examples.count) return;
      int64_t first = 0, last = 0;
      const bool found = feature.in.Find(examples.begin + lane, &first, &last, complaint);
      // There are fewer ids than that.
      examples.firsts[lane] = static_cast<int32_t>(first);
      examples.lasts[lane] = static_cast<int32_t>(last);
      apart[lane] = !found || last - first > kLongRow;
      several[lane] = !found || last - first != 1;
    });
    examples.apart = group.Bits(apart);
    const bool copies = !group.InAny(group.Bits(several) != 0);
    if (group.InAny(feature.in.kind == RowsKind::kIndices)) Check(group, feature, examples);
    // Groups of several in a warp are as wide as their rows, so that all have done after one turn.
    for (Columns columns = {0, static_cast<int32_t>(feature.dim)}; columns.begin < columns.end;
         columns.begin += group.lanes() * kPack) {
      for (int from = 0; group.InAny(from < examples.count);) {
        const int to = examples.StreamEnd(from);
        const int32_t first = group.Of(examples.firsts, from);
        const int32_t last = group.Of(examples.lasts, from);
        const bool is_long = from < to && last - first > kLongRow;
        if (is_long) CombineLong(group, feature, examples.begin + from, first, last, columns);
        Stream stream(group, feature, examples, columns, is_long ? to : from, to);
        if (copies) {
          Copy(group, columns, &stream);
        } else {
          Combine(group, columns, &stream);
        }
        from = to;
      }
    }
  }

  WORKBENCH_DEVICE void Check(const GroupTogether& group, const Feature& feature,
                              const GroupExamples& examples) const {
    for (int e = 0; e < at_once; ++e) {
      const int32_t first = group.Of(examples.firsts, e), last = group.Of(examples.lasts, e);
      if (e >= examples.count) continue;
      feature.in.Check(group, examples.begin + e, first, last, complaint);
    }
  }

  // Of examples that all have one id: the vectors are the rows.
  WORKBENCH_DEVICE void Copy(const GroupTogether& group, const Columns& columns,
                             Stream* stream) const {
    stream->NextIds(group, 0, complaint);
    WORKBENCH_NO_UNROLL
    for (int32_t step = 0; step < at_once; step += kCopiedAtOnce) {
      PerLane<Rows> rows;
      WORKBENCH_UNROLL
      for (int r = 0; r < kCopiedAtOnce; ++r) {
        const int32_t row = group.Of(stream->rows, step + r);
        // Without a branch around a load; what is read instead is there, and goes nowhere.
        group.Each([&](int lane) {
          rows[lane].at[r] = Load<T, kPack>(row < 0 ? stream->out[lane] : stream->Row(lane, row));
        });
      }
      WORKBENCH_UNROLL
      for (int r = 0; r < kCopiedAtOnce; ++r) {
        const int32_t row = stream->lacks ? group.Of(stream->rows, step + r) : 0;
        group.Each([&](int lane) {
          if (step + r >= stream->ids) return;
          // As a sum of one is: -0 is 0.
          WORKBENCH_UNROLL
          for (int c = 0; c < kPack; ++c) {
            Set(ToFloat(rows[lane].at[r].at[c]) + 0.0f, &rows[lane].at[r].at[c]);
          }
          if (row < 0) {
            Fill(stream->feature, stream->Example() + step + r, columns, lane, &rows[lane].at[r]);
          }
          if (columns.Has(lane)) Store(rows[lane].at[r], stream->out[lane]);
          stream->out[lane] += stream->feature.stride;
        });
      }
    }
  }

  // Adds up the rows of the stream, and writes a vector where an example ends.
  WORKBENCH_DEVICE void Combine(const GroupTogether& group, const Columns& columns,
                                Stream* stream) const {
    RowRing<T, kPack, kSlots> ring;
    PerLane<Sums> sums;
    const int32_t steps = group.MostOfAll(stream->ids);
    const auto ask = [&](int32_t step, int32_t row) {
      group.Each([&](int lane) { ring.FindTouched(lane, step, stream->Row(lane, row), row); });
    };
    const auto add = [&](int32_t step) {
      group.Each([&](int lane) {
        const Pack<T, kPack> row = ring.Take(lane, step);
        WORKBENCH_UNROLL
        for (int c = 0; c < kPack; ++c) sums[lane].at[c] += ToFloat(row.at[c]);
      });
    };
    WORKBENCH_NO_UNROLL
    for (int32_t step = 0; step < kSlots; ++step) {
      if (step < steps) {
        if ((step & (group.lanes() - 1)) == 0) stream->NextIds(group, step, complaint);
        const int32_t row = group.Of(stream->rows, step);
        if (step < stream->ids) ask(step, row);
      }
      ring.EndStep();
    }
    // The step before which rows of the next ids are asked for.
    int32_t next_ids = group.lanes() > kSlots ? group.lanes() - kSlots : 0;
    int32_t begin = 0;
    int32_t end = stream->End(group);
    for (int32_t step = 0;;) {
      // To where the next example of any stream ends.
      const int32_t next_end = group.LeastOfAll(end);
      if (next_end == INT32_MAX) return;
      while (step < next_end) {
        const int32_t until = next_end < next_ids ? next_end : next_ids;
        // Two rows at a time: each instruction waits for the one before it.
        WORKBENCH_NO_UNROLL
        for (; step + 1 < until; step += 2) {
          const int32_t row0 = group.Of(stream->rows, step + kSlots);
          const int32_t row1 = group.Of(stream->rows, step + kSlots + 1);
          ring.template Wait<kSlots - 2>();
          add(step);
          add(step + 1);
          if (step + kSlots < steps) {
            if (step + kSlots < stream->ids) ask(step, row0);
            if (step + kSlots + 1 < stream->ids) ask(step + 1, row1);
          }
          ring.EndStep();
          ring.EndStep();
        }
        if (step < until) {
          const int32_t row = group.Of(stream->rows, step + kSlots);
          ring.template Wait<kSlots - 1>();
          add(step);
          if (step + kSlots < stream->ids) ask(step, row);
          ring.EndStep();
          ++step;
        }
        if (step != next_ids) continue;
        if (step + kSlots < steps) stream->NextIds(group, step + kSlots, complaint);
        next_ids += group.lanes();
      }
      const bool ends = end == next_end;
      int32_t added = end - begin;
      if (stream->lacks) {
        const int32_t counted = stream->Count(group, begin, ends ? end : begin);
        if (ends) added = counted;
      }
      if (ends) {
        group.Each([&](int lane) {
          Write(stream->feature, stream->Example(), columns, lane, added, sums[lane].at,
                stream->out[lane]);
          stream->out[lane] += stream->feature.stride;
          sums[lane] = {};
        });
        begin = end;
        ++stream->from;
      }
      const int32_t following = stream->End(group);
      if (ends) end = following;
    }
  }

  // There are few of these, and they may not take registers from the others: a column at a time.
  WORKBENCH_DEVICE void CombineLong(const GroupTogether& group, const Feature& feature,
                                    int64_t example, int32_t first, int32_t last,
                                    const Columns& columns) const {
    group.Each([&](int lane) {
      if (!columns.Has(lane)) return;
      Pack<T, kPack> out;
      WORKBENCH_NO_UNROLL
      for (int c = 0; c < kPack; ++c) {
        double sum = 0;
        int32_t added = 0;
        WORKBENCH_NO_UNROLL
        for (int32_t i = first; i < last; ++i) {
          const int64_t row = feature.in.RowOf(i, example, complaint);
          if (row < 0) continue;
          ++added;
          sum += ToFloat(feature.table[row * feature.dim + columns.Of(lane) + c]);
        }
        if (added == 0) {
          Fill(feature, example, columns, lane, &out);
          break;
        }
        // Rounded once, as on a CPU.
        Place(static_cast<float>(sum / DivisorOf(feature.in.combiner, added)), c, &out);
      }
      Store(out, feature.out + example * feature.stride + columns.Of(lane));
    });
  }

  // out->at[c] = value, without an index that is known to nobody before it runs.
  static WORKBENCH_DEVICE void Place(float value, int c, Pack<T, kPack>* out) {
    WORKBENCH_UNROLL
    for (int other = 0; other < kPack; ++other) {
      if (other == c) Set(value, &out->at[other]);
    }
  }

  // A lane's columns of the vector of an example that asks for no row.
  WORKBENCH_DEVICE void Fill(const Feature& feature, int64_t example, const Columns& columns,
                             int lane, Pack<T, kPack>* out) const {
    *out = {};
    const int64_t row = feature.in.FillRow(example, complaint);
    if (row >= 0) *out = Load<T, kPack>(feature.table + row * feature.dim + columns.Within(lane));
  }

  // A lane's columns of the vector of an example, of the sums of its rows.
  WORKBENCH_DEVICE void Write(const Feature& feature, int64_t example, const Columns& columns,
                              int lane, int32_t added, const float* sums, T* to) const {
    Pack<T, kPack> out;
    if (added == 0) {
      Fill(feature, example, columns, lane, &out);
    } else if (added == 1 || feature.in.combiner == Combiner::kSum) {
      WORKBENCH_UNROLL
      for (int c = 0; c < kPack; ++c) Set(sums[c], &out.at[c]);
    } else {
      const Quotients<kPack> quotients(sums, DivisorOf(feature.in.combiner, added));
      WORKBENCH_UNROLL
      for (int c = 0; c < kPack; ++c) Set(quotients.at[c], &out.at[c]);
    }
    if (columns.Has(lane)) Store(out, to);
  }
};

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_ROWS_LOOK_UP_BODY_INL_H_
