#ifndef WORKBENCH_CUDA_ROWS_APPLY_INL_H_
#define WORKBENCH_CUDA_ROWS_APPLY_INL_H_

// Updates of rows. A group of lanes for each entry of what was asked for, or for each name of a row:
// the first one of a row does all of them, the others end at once. So nobody need know how many
// rows there are.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "cuda/calls.h"
#include "cuda/device/portable.h"
#include "cuda/rows/touched_inl.h"
#include "cuda/rows/gradients_inl.h"
#include "cuda/rows/row_change_inl.h"
#include "cuda/rows/rules_inl.h"
#include "cuda/rows/sums_inl.h"

namespace workbench::cuda {

// The entry behind the last one with the key of this one.
WORKBENCH_DEVICE int64_t EndOf(const uint64_t* keys, int64_t entry, int64_t entries) {
  const uint64_t key = keys[entry];
  int64_t step = 1, low = entry;
  // Few entries to most rows: farther and farther, then between the last two.
  while (low + step < entries && keys[low + step] == key) {
    low += step;
    step *= 2;
  }
  int64_t high = low + step < entries ? low + step : entries;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (keys[middle] == key ? low : high) = middle;
  }
  return high;
}

// Sums the gradients of rows of some tables, and changes the rows.
template <typename TheRule, int kPack>
struct ApplyBody {
  static constexpr int kTables = 64;
  TableCall tables[kTables];
  int64_t first_table, end_table;
  TouchedGradients<float> in;
  const uint64_t* keys;
  int64_t entries;
  int32_t row_bits;
  uint64_t skipped;  // a bit for each of these tables that is read in other packs
  TheRule rule;

  WORKBENCH_DEVICE void operator()(const Group& group, int64_t entry) const {
    if (!IsFirst(keys, entry)) return;
    const int64_t t = static_cast<int64_t>(keys[entry] >> row_bits);
    if (t < first_table || t >= end_table || (skipped >> (t - first_table) & 1) != 0) return;
    const TableCall& table = tables[t - first_table];
    const int64_t row = static_cast<int64_t>(keys[entry] & ((uint64_t{1} << row_bits) - 1));
    const int64_t end = EndOf(keys, entry, entries);
    ChangeRow<kPack>(group, rule, table, row, [&](int64_t column, float* sums) {
      AddRows<kPack>(in, entry, end, column, sums);
    });
  }
};

// Of those tables that can, or cannot, be read in packs.
template <int kPack, typename TheRule, typename Device>
void ApplyAlike(const GroupCall& call, const Touched& touched, const TheRule& rule, Device* device) {
  using Body = ApplyBody<TheRule, kPack>;
  for (int from = 0; from < call.table_count; from += Body::kTables) {
    const int end = std::min(call.table_count, from + Body::kTables);
    Body body = {{},         from,          end,           {touched.who, touched.gradients, touched.factors},
                 touched.keys, touched.entries, touched.row_bits, 0, rule};
    int64_t dim = 0;
    for (int t = from; t < end; ++t) {
      body.tables[t - from] = call.tables[t];
      const bool packs = TableFitsPacks(call.tables[t], TheRule::kByRow) &&
                         GradientsFitPacks<float>(call, t);
      if (packs == (kPack > 1)) {
        dim = std::max(dim, call.tables[t].dim);
      } else {
        body.skipped |= uint64_t{1} << (t - from);
      }
    }
    if (dim > 0) device->Run(touched.entries, LanesFor(dim, kPack), body);
  }
}

template <typename Device>
void Apply(const GroupCall& call, const Touched& touched, const RuleCall& how, Device* device) {
  WithRule(how, [&](const auto& rule) {
    ApplyAlike<kWide<float>>(call, touched, rule, device);
    ApplyAlike<1>(call, touched, rule, device);
  });
}

// Writes a key for each name of a row.
struct NamesBody {
  const int64_t* rows;
  int64_t table_rows;
  uint64_t* keys;
  int32_t* who;
  uint64_t* complaint;

  WORKBENCH_DEVICE void operator()(const Group& group, int64_t number) const {
    group.Each([&](int) {
      const int64_t row = rows[number];
      const bool there = row >= 0 && row < table_rows;
      if (!there) Complain(IdFault::kNoSuchRow, 0, number, complaint);
      keys[number] = there ? static_cast<uint64_t>(row) : kNothing;
      who[number] = static_cast<int32_t>(number);
    });
  }
};

// Changes a row by one gradient after the other.
template <typename TheRule, int kPack>
struct RowsApplyBody {
  TableCall table;
  const float* gradients;
  const uint64_t* keys;
  const int32_t* who;
  int64_t count;
  TheRule rule;

  WORKBENCH_DEVICE void operator()(const Group& group, int64_t entry) const {
    if (!IsFirst(keys, entry)) return;
    const int64_t row = static_cast<int64_t>(keys[entry]);
    const int64_t end = EndOf(keys, entry, count);
    for (int64_t i = entry; i < end; ++i) {
      const float* from = gradients + who[i] * table.dim;
      ChangeRow<kPack>(group, rule, table, row, [&](int64_t column, float* grad) {
        const Pack<float, kPack> pack = Load<float, kPack>(from + column);
        for (int c = 0; c < kPack; ++c) grad[c] = pack.at[c];
      });
    }
  }
};

// The keys as they come and in order, and whose they are.
template <typename Device>
int64_t TakeRowsParts(const RowsCall& call, void* workspace, Unordered* from, uint64_t** keys,
                      int32_t** who) {
  Parts parts(workspace);
  from->keys = parts.Take<uint64_t>(call.count);
  from->who = parts.Take<int32_t>(call.count);
  from->scratch_bytes = Device::SortBytes(call.count);
  from->scratch = parts.Take<char>(from->scratch_bytes);
  *keys = parts.Take<uint64_t>(call.count);
  *who = parts.Take<int32_t>(call.count);
  return std::max<int64_t>(1, parts.bytes());
}

template <typename Device>
void RowsApply(const RowsCall& call, const RuleCall& how, void* workspace, Device* device) {
  Unordered from;
  uint64_t* keys = nullptr;
  int32_t* who = nullptr;
  TakeRowsParts<Device>(call, workspace, &from, &keys, &who);
  device->Run(call.count, 1,
              NamesBody{call.rows, call.table.rows, from.keys, from.who, call.complaint});
  // So that no row has all bits set: that is kNothing. A sort is by one bit at least.
  const int bits = std::max(1, BitsFor(static_cast<uint64_t>(call.table.rows)));
  device->Sort(from.keys, from.who, call.count, bits, from.scratch, from.scratch_bytes, keys, who);
  WithRule(how, [&](const auto& rule) {
    using TheRule = std::decay_t<decltype(rule)>;
    const TableCall& table = call.table;
    if (TableFitsPacks(table, TheRule::kByRow) && FitsPacks<float>(call.gradients, table.dim)) {
      device->Run(call.count, LanesFor(table.dim, kWide<float>),
                  RowsApplyBody<TheRule, kWide<float>>{table, call.gradients, keys, who,
                                                       call.count, rule});
    } else {
      device->Run(call.count, LanesFor(table.dim, 1),
                  RowsApplyBody<TheRule, 1>{table, call.gradients, keys, who, call.count, rule});
    }
  });
}

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_ROWS_APPLY_INL_H_
