#ifndef WORKBENCH_CUDA_ROWS_WEIGHTED_WEIGHTED_LOOK_UP_INL_H_
#define WORKBENCH_CUDA_ROWS_WEIGHTED_WEIGHTED_LOOK_UP_INL_H_

// The forward direction of features with weights, or whose rows are shortened: a group of lanes for
// each example.

#include <cstdint>

#include "cuda/calls.h"
#include "cuda/device/portable.h"
#include "cuda/device/scalars.h"
#include "cuda/rows/launch_inl.h"
#include "cuda/rows/sums_inl.h"
#include "cuda/rows/weighted/weighted_ids_inl.h"

namespace workbench::cuda {

template <typename T, typename Id>
struct WeightedLookUp {
  WeightedIds<Id> ids;
  const T* table;
  int64_t dim;
  T* out;
  int64_t stride;
  float max_norm;
  bool shortens;

  static WeightedLookUp Of(const FeatureCall& feature, int number, const TableCall& table) {
    return {WeightedIdsOf<Id>(feature, number, table.rows),
            static_cast<const T*>(table.values),
            table.dim,
            static_cast<T*>(feature.vectors),
            feature.stride,
            feature.max_norm,
            feature.shortens != 0};
  }
};

template <typename T, typename Id, int kPack>
struct WeightedLookUpBody {
  using Feature = WeightedLookUp<T, Id>;
  Feature features[kFeaturesAtOnce];
  FeatureEnds ends;
  uint64_t* complaint;

  struct Sums {
    float at[kPack];
  };

  template <int kAtOnce>
  struct Rows {
    Pack<T, kPack> at[kAtOnce];

    // Nothing need be there.
    WORKBENCH_DEVICE Rows() {}
  };

  // The ids of an example that stay, or the row that is there instead.
  struct Touched {
    int64_t example, first, last, fill;
    StayingIds staying;
  };

  WORKBENCH_DEVICE void operator()(const Group& group, int64_t number) const {
    const int f = ends.FeatureOf(number);
    const Feature& feature = features[f];
    Touched touched;
    touched.example = number - ends.Begin(f);
    touched.first = touched.last = 0;
    feature.ids.in.Find(touched.example, &touched.first, &touched.last, complaint);
    feature.ids.in.Check(group, touched.example, touched.first, touched.last, complaint);
    touched.staying = feature.ids.Staying(touched.first, touched.last, touched.example, complaint);
    touched.fill =
        touched.staying.count > 0 ? kNoRow : feature.ids.in.FillRow(touched.example, complaint);
    for (int64_t begin = 0; begin < feature.dim; begin += group.lanes() * kPack) {
      PerLane<Sums> sums;
      float divisor = touched.staying.divisor;
      if (touched.fill >= 0) {
        Add<1>(group, feature, touched, touched.first, begin, &sums);
        divisor = 1.0f;
      } else if (touched.staying.count > kLongRow) {
        AddLong(group, feature, touched, begin, &sums);
        divisor = 1.0f;
      } else if (feature.shortens) {
        // A length is a pass of its own: more rows would only take registers.
        AddAll<1>(group, feature, touched, begin, &sums);
      } else {
        AddAll<kInFlight>(group, feature, touched, begin, &sums);
      }
      Write(group, feature, touched.example, begin, divisor, sums);
    }
  }

  // Columns from `begin` on, a pack for each lane, kAtOnce rows at a time.
  template <int kAtOnce>
  WORKBENCH_DEVICE void AddAll(const Group& group, const Feature& feature, const Touched& touched,
                               int64_t begin, PerLane<Sums>* sums) const {
    WORKBENCH_NO_UNROLL
    for (int64_t i = touched.first; i < touched.last; i += kAtOnce) {
      Add<kAtOnce>(group, feature, touched, i, begin, sums);
    }
  }

  // Adds the rows of kAtOnce ids, or of as many as are left: asks the memory for all, then adds
  // them in order. A row that is to be shortened comes alone, as does the one that fills.
  template <int kAtOnce>
  WORKBENCH_DEVICE void Add(const Group& group, const Feature& feature, const Touched& touched,
                            int64_t i, int64_t begin, PerLane<Sums>* sums) const {
    int64_t row[kAtOnce];
    float weight[kAtOnce];
    WORKBENCH_UNROLL
    for (int k = 0; k < kAtOnce; ++k) {
      const bool filled = touched.fill >= 0, there = !filled && i + k < touched.last;
      row[k] = there ? feature.ids.RowOf(i + k, touched.example, nullptr) : touched.fill;
      weight[k] = there ? feature.ids.WeightOf(i + k) : 1.0f;
    }
    PerLane<Rows<kAtOnce>> rows;
    group.Each([&](int lane) {
      const int64_t column = begin + lane * kPack;
      if (column >= feature.dim) return;
      WORKBENCH_UNROLL
      for (int k = 0; k < kAtOnce; ++k) {
        if (row[k] < 0) continue;
        rows[lane].at[k] = Load<T, kPack>(feature.table + row[k] * feature.dim + column);
      }
    });
    WORKBENCH_UNROLL
    for (int k = 0; k < kAtOnce; ++k) {
      if (row[k] < 0) continue;
      const float scale = kAtOnce == 1 ? ScaleOf(group, feature, row[k]) : 1.0f;
      group.Each([&](int lane) {
        if (begin + lane * kPack >= feature.dim) return;
        WORKBENCH_UNROLL
        for (int c = 0; c < kPack; ++c) {
          (*sums)[lane].at[c] += ToFloat(rows[lane].at[k].at[c]) * scale * weight[k];
        }
      });
    }
  }

  // Sets sums that are divided already. There are few of these, and they may not take registers
  // from the others: a column at a time.
  WORKBENCH_DEVICE void AddLong(const Group& group, const Feature& feature, const Touched& touched,
                                int64_t begin, PerLane<Sums>* sums) const {
    const float divisor = touched.staying.divisor;
    WORKBENCH_NO_UNROLL
    for (int c = 0; c < kPack; ++c) {
      PerLane<double> sum;
      WORKBENCH_NO_UNROLL
      for (int64_t i = touched.first; i < touched.last; ++i) {
        const int64_t row = feature.ids.RowOf(i, touched.example, nullptr);
        if (row < 0) continue;
        const float scale = ScaleOf(group, feature, row), weight = feature.ids.WeightOf(i);
        group.Each([&](int lane) {
          const int64_t column = begin + lane * kPack + c;
          if (column - c >= feature.dim) return;
          sum[lane] += ToFloat(feature.table[row * feature.dim + column]) * scale * weight;
        });
      }
      // Rounded once, as on a CPU.
      group.Each([&](int lane) {
        const double mean = divisor == 0 ? 0.0 : sum[lane] / divisor;
        WORKBENCH_UNROLL
        for (int other = 0; other < kPack; ++other) {
          if (other == c) (*sums)[lane].at[other] = static_cast<float>(mean);
        }
      });
    }
  }

  WORKBENCH_DEVICE void Write(const Group& group, const Feature& feature, int64_t example,
                              int64_t begin, float divisor, const PerLane<Sums>& sums) const {
    group.Each([&](int lane) {
      const int64_t column = begin + lane * kPack;
      if (column >= feature.dim) return;
      Pack<T, kPack> out;
      WORKBENCH_UNROLL
      for (int c = 0; c < kPack; ++c) {
        Set(divisor == 0 ? 0.0f : sums[lane].at[c] / divisor, &out.at[c]);
      }
      Store(out, feature.out + example * feature.stride + column);
    });
  }

  // What a row is multiplied with to be no longer than it may be.
  WORKBENCH_DEVICE float ScaleOf(const Group& group, const Feature& feature, int64_t row) const {
    if (!feature.shortens) return 1.0f;
    return Shortened(SquaredLength(group, feature, row), feature.max_norm);
  }

  WORKBENCH_DEVICE float SquaredLength(const Group& group, const Feature& feature,
                                       int64_t row) const {
    PerLane<float> squares;
    EachPack<kPack>(group, feature.dim, [&](int lane, int64_t column) {
      const auto pack = Load<T, kPack>(feature.table + row * feature.dim + column);
      WORKBENCH_UNROLL
      for (int c = 0; c < kPack; ++c) squares[lane] += ToFloat(pack.at[c]) * ToFloat(pack.at[c]);
    });
    return group.Sum(squares);
  }
};

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_ROWS_WEIGHTED_WEIGHTED_LOOK_UP_INL_H_
