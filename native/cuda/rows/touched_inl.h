#ifndef WORKBENCH_CUDA_ROWS_TOUCHED_INL_H_
#define WORKBENCH_CUDA_ROWS_TOUCHED_INL_H_

// What a gradient begins with: who asked for which row, in order of the rows. One sort does all
// tables; it is stable, so that gradients of a row are summed in one order every time.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cuda/calls.h"
#include "cuda/device/portable.h"
#include "cuda/rows/examples_inl.h"
#include "cuda/rows/weighted/weighted_entries_inl.h"
#include "cuda/rows/weighted/weighted_ids_inl.h"

namespace workbench::cuda {

// What asks for nothing; behind all other keys.
constexpr uint64_t kNothing = ~uint64_t{0};
// Rows of tables of unknown size.
constexpr int kMostRowBits = 40;
// Lanes that share an example's ids.
constexpr int kIdLanes = 8;

inline int BitsFor(uint64_t value) {
  int bits = 0;
  for (; value != 0; value >>= 1) ++bits;
  return bits;
}

inline int64_t EntriesOf(const FeatureCall& feature) {
  return feature.count + (feature.fills != 0 ? feature.examples : 0);
}

// Hands out parts of a workspace, or counts its bytes where there is none yet.
class Parts {
 public:
  explicit Parts(void* workspace) : begin_(static_cast<char*>(workspace)) {}

  template <typename V>
  V* Take(int64_t count) {
    V* part = begin_ == nullptr ? nullptr : reinterpret_cast<V*>(begin_ + bytes_);
    bytes_ += (count * static_cast<int64_t>(sizeof(V)) + kAlign - 1) / kAlign * kAlign;
    return part;
  }

  int64_t bytes() const { return bytes_; }

 private:
  static constexpr int64_t kAlign = 256;
  char* begin_;
  int64_t bytes_ = 0;
};

// What is needed only until the entries are ordered.
struct Unordered {
  uint64_t* keys = nullptr;
  int32_t* who = nullptr;
  char* scratch = nullptr;
  int64_t scratch_bytes = 0;
};

template <typename Device>
int64_t TakeParts(const GroupCall& call, Numbering numbering, void* workspace, Touched* touched,
                  Unordered* unordered) {
  *touched = Touched();
  for (int f = 0; f < call.feature_count; ++f) {
    touched->entries += EntriesOf(call.features[f]);
    touched->examples += call.features[f].examples;
  }
  if (HasWeights(call)) touched->examples = touched->entries;
  int64_t most = 1;
  for (int t = 0; t < call.table_count; ++t) most = std::max(most, call.tables[t].rows);
  touched->row_bits = std::min(BitsFor(static_cast<uint64_t>(most - 1)), kMostRowBits);
  // So that no table has all bits set: that is kNothing.
  touched->key_bits = touched->row_bits + BitsFor(static_cast<uint64_t>(call.table_count));
  Parts parts(workspace);
  touched->keys = parts.Take<uint64_t>(touched->entries);
  touched->who = parts.Take<int32_t>(touched->entries);
  touched->gradients = parts.Take<const void*>(touched->examples);
  touched->factors = parts.Take<float>(touched->examples);
  touched->numbers = parts.Take<int32_t>(touched->entries);
  touched->firsts = parts.Take<int32_t>(
      (numbering == Numbering::kEvery ? call.tables[0].rows : touched->entries) + 1);
  touched->table_firsts = parts.Take<int32_t>(call.table_count + 1);
  unordered->keys = parts.Take<uint64_t>(touched->entries);
  unordered->who = parts.Take<int32_t>(touched->entries);
  unordered->scratch_bytes = std::max(Device::SortBytes(touched->entries),
                                      Device::SumBytes(touched->entries));
  unordered->scratch = parts.Take<char>(unordered->scratch_bytes);
  return std::max<int64_t>(1, parts.bytes());
}

template <typename T, typename Id>
struct FeatureEntries {
  static ExampleIds<Id> Ids(const FeatureCall& call, int feature, int64_t table_rows) {
    return IdsOf<Id>(call, feature, table_rows);
  }

  ExampleIds<Id> in;
  const T* gradients;
  int64_t stride;
  int64_t first_entry, first_example;
  uint64_t table;  // shifted to its place in a key
};

// Writes the entries of examples: a group for each.
template <typename T, typename Id>
struct EntriesBody {
  using Feature = FeatureEntries<T, Id>;
  Feature features[kFeaturesAtOnce];
  FeatureEnds ends;
  uint64_t* keys;
  int32_t* who;
  const void** gradients;
  float* factors;
  int64_t first_example;
  uint64_t* complaint;

  WORKBENCH_DEVICE void operator()(const Group& group, int64_t number) const {
    const int64_t global = first_example + number;
    const Feature& feature = features[ends.FeatureOf(global)];
    const int64_t example = global - feature.first_example;
    int64_t first = 0, last = 0;
    feature.in.Find(example, &first, &last, complaint);
    feature.in.Check(group, example, first, last, complaint);
    PerLane<int32_t> found;
    group.Each([&](int lane) {
      for (int64_t i = first + lane; i < last; i += group.lanes()) {
        const int64_t row = feature.in.RowOf(i, example, complaint);
        if (row < 0) continue;
        Put(feature.first_entry + i, feature.table | static_cast<uint64_t>(row), global);
        ++found[lane];
      }
    });
    const int32_t count = group.Sum(found);
    group.Each([&](int lane) {
      if (lane != 0) return;
      gradients[global] = feature.gradients + example * feature.stride;
      factors[global] = 1.0f / DivisorOf(feature.in.combiner, count > 0 ? count : 1);
      const int64_t row = count > 0 ? -1 : feature.in.FillRow(example, complaint);
      if (row < 0) return;
      Put(feature.first_entry + feature.in.count + example,
          feature.table | static_cast<uint64_t>(row), global);
    });
  }

  WORKBENCH_DEVICE void Put(int64_t entry, uint64_t key, int64_t example) const {
    keys[entry] = key;
    who[entry] = static_cast<int32_t>(example);
  }
};

// Whether an entry is the first one of its row.
WORKBENCH_DEVICE bool IsFirst(const uint64_t* keys, int64_t entry) {
  return keys[entry] != kNothing && (entry == 0 || keys[entry - 1] != keys[entry]);
}

// A one for the first entry of each row; their sums number the rows.
struct MarkBody {
  const uint64_t* keys;
  int32_t* marks;

  WORKBENCH_DEVICE void operator()(const Group& group, int64_t entry) const {
    group.Each([&](int) { marks[entry] = IsFirst(keys, entry) ? 1 : 0; });
  }
};

// Writes where each row, and each table, begins. `numbers` are counted from 1.
struct FirstsBody {
  const uint64_t* keys;
  const int32_t* numbers;
  int64_t entries;
  int32_t row_bits;
  int32_t tables;
  int32_t* firsts;
  int32_t* table_firsts;

  WORKBENCH_DEVICE void operator()(const Group& group, int64_t entry) const {
    group.Each([&](int) {
      const int64_t before = entry == 0 ? -1 : TableOf(entry - 1);
      const int32_t rows = entry == 0 ? 0 : numbers[entry - 1];
      // Of one more than there are, so that the last row and the last table end.
      const bool ends = entry == entries || keys[entry] == kNothing;
      const int64_t table = ends ? tables : TableOf(entry);
      for (int64_t t = before + 1; t <= table; ++t) table_firsts[t] = rows;
      const bool ended = entry > 0 && keys[entry - 1] == kNothing;
      if ((ends && !ended) || (!ends && IsFirst(keys, entry))) {
        firsts[rows] = static_cast<int32_t>(entry);
      }
    });
  }

  WORKBENCH_DEVICE int64_t TableOf(int64_t entry) const {
    return keys[entry] == kNothing ? tables : static_cast<int64_t>(keys[entry] >> row_bits);
  }
};

// The first entry of a row, or of the next one that has any.
struct FirstBody {
  const uint64_t* keys;
  int64_t entries;
  int32_t* firsts;

  WORKBENCH_DEVICE void operator()(const Group& group, int64_t row) const {
    group.Each([&](int) {
      int64_t low = 0, high = entries;
      while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (keys[middle] < static_cast<uint64_t>(row)) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      firsts[row] = static_cast<int32_t>(low);
    });
  }
};

template <typename T, typename Body, typename Device>
void WriteEntries(const GroupCall& call, const Touched& touched, const Unordered& unordered,
                  Device* device) {
  int64_t entry = 0, example = 0;
  for (int from = 0; from < call.feature_count; from += kFeaturesAtOnce) {
    Body body = {};
    body.keys = unordered.keys;
    body.who = unordered.who;
    body.gradients = touched.gradients;
    body.factors = touched.factors;
    body.first_example = example;
    body.complaint = call.complaint;
    for (int f = from; f < std::min(call.feature_count, from + kFeaturesAtOnce); ++f) {
      const FeatureCall& feature = call.features[f];
      const int64_t rows =
          std::min(call.tables[feature.table].rows, int64_t{1} << touched.row_bits);
      body.features[f - from] = {Body::Feature::Ids(feature, f, rows),
                                 static_cast<const T*>(feature.vectors),
                                 feature.stride,
                                 entry,
                                 example,
                                 static_cast<uint64_t>(feature.table) << touched.row_bits};
      entry += EntriesOf(feature);
      body.ends.End(f - from, example += feature.examples);
    }
    device->Run(example - body.first_example, kIdLanes, body);
  }
}

template <typename Device>
void Number(const GroupCall& call, Numbering numbering, const Touched& touched,
            const Unordered& unordered, Device* device) {
  if (numbering == Numbering::kNone) return;
  if (numbering == Numbering::kEvery) {
    device->Run(call.tables[0].rows + 1, 1, FirstBody{touched.keys, touched.entries, touched.firsts});
    return;
  }
  // In the memory of the keys, which are ordered by now.
  int32_t* marks = reinterpret_cast<int32_t*>(unordered.keys);
  device->Run(touched.entries, 1, MarkBody{touched.keys, marks});
  device->Sum(marks, touched.entries, unordered.scratch, unordered.scratch_bytes, touched.numbers);
  device->Run(touched.entries + 1, 1,
              FirstsBody{touched.keys, touched.numbers, touched.entries, touched.row_bits,
                         call.table_count, touched.firsts, touched.table_firsts});
}

// Orders what the features ask for.
template <typename T, typename Id, typename Device>
void FindTouched(const GroupCall& call, Numbering numbering, void* workspace, Touched* touched,
         Device* device) {
  Unordered unordered;
  TakeParts<Device>(call, numbering, workspace, touched, &unordered);
  device->Fill(0xff, touched->entries * sizeof(uint64_t), unordered.keys);
  if (HasWeights(call)) {
    WriteEntries<T, WeightedEntriesBody<T, Id>>(call, *touched, unordered, device);
  } else {
    WriteEntries<T, EntriesBody<T, Id>>(call, *touched, unordered, device);
  }
  device->Sort(unordered.keys, unordered.who, touched->entries, touched->key_bits, unordered.scratch,
               unordered.scratch_bytes, touched->keys, touched->who);
  Number(call, numbering, *touched, unordered, device);
}

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_ROWS_TOUCHED_INL_H_
