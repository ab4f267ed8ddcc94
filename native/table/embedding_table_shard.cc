#include "table/embedding_table_shard.h"

#include <algorithm>
#include <utility>

namespace workbench {
namespace {

constexpr int64_t kBlock = 16;  // keys whose memory is fetched ahead together

const float* DefaultRow(const LookupBatch& batch, int64_t key, int64_t dim) {
  return workbench::DefaultRow(batch.default_rows, batch.default_count, key, dim);
}

}  // namespace

TableShard::TableShard(const TableOptions& options, uint64_t seed)
    : options_(options),
      index_(seed),
      keys_(1),
      values_(options.dim),
      freqs_(1),
      versions_(1),
      waiting_(seed, (options.most_waiting + kTableShards - 1) / kTableShards,
               options.keep_versions),
      bloom_((options.bloom_counters + kTableShards - 1) / kTableShards,
             static_cast<int>(options.bloom_hashes), static_cast<int>(options.bloom_bytes)) {}

void TableShard::Lookup(const LookupBatch& batch, const int32_t* at, int64_t count) {
  std::lock_guard<std::mutex> lock(mu_);
  // First all counting: a key that comes often enough in this batch has its row for all of it.
  if (options_.filter_freq > 0 && !batch.read_only) Count(batch, at, count);
  uint64_t hashes[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t block = std::min(kBlock, count - begin);
    FetchBlock(batch.keys, at + begin, block, hashes);
    for (int64_t i = 0; i < block; ++i) ReadRow(batch, at[begin + i], hashes[i]);
  }
}

void TableShard::FetchBlock(const int64_t* keys, const int32_t* at, int64_t count,
                            uint64_t* hashes) const {
  for (int64_t i = 0; i < count; ++i) {
    hashes[i] = index_.Hash(keys[at[i]]);
    index_.Fetch(hashes[i]);
  }
  for (int64_t i = 0; i < count; ++i) FetchRow(hashes[i], true);
}

void TableShard::AddIfMissing(int64_t key, const float* values) {
  std::lock_guard<std::mutex> lock(mu_);
  const uint64_t hash = index_.Hash(key);
  if (index_.Find(hash, key, KeyOf()) == KeyIndex::kNone) Append(hash, key, values);
}

void TableShard::ReadRow(const LookupBatch& batch, int32_t at, uint64_t hash) {
  const int64_t key = batch.keys[at];
  const int64_t dim = options_.dim;
  float* out = batch.out + at * dim;
  int64_t row = index_.Find(hash, key, KeyOf());
  if (row == KeyIndex::kNone) {
    if (options_.filter_freq > 0) {
      std::fill_n(out, dim, options_.no_permission);
      return;
    }
    const float* values = DefaultRow(batch, key, dim);
    std::copy_n(values, dim, out);
    if (batch.read_only) return;
    row = Append(hash, key, values);
  } else {
    std::copy_n(values_.At(row), dim, out);
  }
  if (options_.keep_versions && !batch.read_only) *versions_.At(row) = Version(batch.step);
}

void TableShard::Count(const LookupBatch& batch, const int32_t* at, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t key = batch.keys[at[i]];
    const uint64_t hash = index_.Hash(key);
    const int64_t times = batch.counts == nullptr ? 1 : std::max(batch.counts[at[i]], 0);
    int64_t row = index_.Find(hash, key, KeyOf());
    if (row != KeyIndex::kNone) {
      *freqs_.At(row) = Saturated(*freqs_.At(row) + times);
      continue;
    }
    const int64_t freq =
        bloom_.on() ? bloom_.Add(key, times) : waiting_.Add(hash, key, times, batch.step);
    if (freq < options_.filter_freq) continue;
    if (!bloom_.on()) waiting_.Remove(hash, key);
    row = Append(hash, key, DefaultRow(batch, key, options_.dim));
    *freqs_.At(row) = Saturated(freq);
  }
}

int64_t TableShard::Append(uint64_t hash, int64_t key, const float* values) {
  const int64_t row = index_.size();
  keys_.Reserve(row + 1);
  values_.Reserve(row + 1);
  *keys_.At(row) = key;
  std::copy_n(values, options_.dim, values_.At(row));
  if (options_.keep_freqs()) {
    freqs_.Reserve(row + 1);
    *freqs_.At(row) = 0;
  }
  if (options_.keep_versions) {
    versions_.Reserve(row + 1);
    *versions_.At(row) = kNoVersion;
  }
  for (size_t s = 0; s < slots_.size(); ++s) {
    slots_[s].Reserve(row + 1);
    std::fill_n(slots_[s].At(row), options_.dim, slot_initials_[s]);
  }
  index_.Append(hash, KeyOf());
  return row;
}

void TableShard::SumByRow(const UpdateBatch& batch, const int32_t* at, int64_t count,
                          UpdateScratch* scratch) {
  const int64_t dim = options_.dim;
  size_t places = 16;
  while (places < 2 * static_cast<size_t>(count)) places *= 2;
  scratch->places.assign(places, 0);
  scratch->rows.clear();
  scratch->sums.clear();
  uint64_t hashes[kBlock];
  for (int64_t i = 0; i < count; ++i) {
    if (i % kBlock == 0) FetchBlock(batch.keys, at + i, std::min(kBlock, count - i), hashes);
    const int64_t row = index_.Find(hashes[i % kBlock], batch.keys[at[i]], KeyOf());
    if (row == KeyIndex::kNone) continue;
    const float* grad = batch.grads + at[i] * dim;
    size_t place = (static_cast<uint64_t>(row) * 0x9e3779b97f4a7c15u >> 20) & (places - 1);
    while (scratch->places[place] != 0 && scratch->rows[scratch->places[place] - 1] != row) {
      place = (place + 1) & (places - 1);
    }
    if (scratch->places[place] == 0) {
      scratch->rows.push_back(row);
      scratch->places[place] = static_cast<int32_t>(scratch->rows.size());
      scratch->sums.insert(scratch->sums.end(), grad, grad + dim);
    } else {
      float* sum = scratch->sums.data() + (scratch->places[place] - 1) * dim;
      for (int64_t d = 0; d < dim; ++d) sum[d] += grad[d];
    }
  }
}

void TableShard::Update(const UpdateBatch& batch, const std::vector<int>& slots,
                        const UpdateRule& rule, const int32_t* at, int64_t count,
                        UpdateScratch* scratch) {
  std::lock_guard<std::mutex> lock(mu_);
  SumByRow(batch, at, count, scratch);
  constexpr size_t kMostSlots = 4;
  float* of_row[kMostSlots] = {};
  for (size_t r = 0; r < scratch->rows.size(); ++r) {
    const int64_t row = scratch->rows[r];
    for (size_t s = 0; s < slots.size() && s < kMostSlots; ++s) of_row[s] = slots_[slots[s]].At(row);
    rule.Update(options_.dim, scratch->sums.data() + r * options_.dim, values_.At(row), of_row);
  }
}

void TableShard::AddSlot(float initial) {
  slots_.emplace_back(options_.dim);
  slot_initials_.push_back(initial);
  slots_.back().Reserve(index_.size());
  for (int64_t row = 0; row < index_.size(); ++row) {
    std::fill_n(slots_.back().At(row), options_.dim, initial);
  }
}

void TableShard::Clear() {
  index_.Clear();
  keys_.Release(0);
  values_.Release(0);
  freqs_.Release(0);
  versions_.Release(0);
  for (RowColumn<float>& slot : slots_) slot.Release(0);
  waiting_.Clear();
  bloom_.Clear();
}

void TableShard::Evict(int64_t step, int64_t steps_to_live) {
  for (int64_t row = index_.size() - 1; row >= 0; --row) {
    if (!IsOld(step, steps_to_live, versions_.At(row))) continue;
    const int64_t last = index_.size() - 1;
    index_.Remove(row, KeyOf());
    keys_.Copy(last, row);
    values_.Copy(last, row);
    versions_.Copy(last, row);
    if (options_.keep_freqs()) freqs_.Copy(last, row);
    for (RowColumn<float>& slot : slots_) slot.Copy(last, row);
  }
  index_.Fit(KeyOf());
  keys_.Release(index_.size());
  values_.Release(index_.size());
  freqs_.Release(index_.size());
  versions_.Release(index_.size());
  for (RowColumn<float>& slot : slots_) slot.Release(index_.size());
  waiting_.Evict(step, steps_to_live);
}

void TableShard::Export(const RowTargets& to, int64_t begin, int64_t filtered) const {
  const int64_t dim = options_.dim;
  for (int64_t row = 0; row < index_.size(); ++row) {
    const int64_t i = begin + row;
    to.keys[i] = *keys_.At(row);
    std::copy_n(values_.At(row), dim, to.values + i * dim);
    if (to.freqs != nullptr) to.freqs[i] = *freqs_.At(row);
    if (to.versions != nullptr) to.versions[i] = *versions_.At(row);
    for (size_t s = 0; s < to.slots.size(); ++s) {
      if (to.slots[s] != nullptr) std::copy_n(slots_[s].At(row), dim, to.slots[s] + i * dim);
    }
  }
  for (int64_t row = 0; row < waiting_.size(); ++row) {
    const int64_t i = filtered + row;
    to.filtered_keys[i] = waiting_.keys()[row];
    to.filtered_freqs[i * to.filtered_stride] = waiting_.counts()[row];
    if (to.filtered_versions != nullptr) {
      to.filtered_versions[i * to.filtered_stride] = waiting_.versions()[row];
    }
  }
}

bool TableShard::Import(const RowSources& from, int64_t i) {
  const int64_t dim = options_.dim;
  const int64_t key = from.keys[i];
  const uint64_t hash = index_.Hash(key);
  if (index_.Find(hash, key, KeyOf()) != KeyIndex::kNone) return false;
  const int64_t row = Append(hash, key, from.values + i * dim);
  // A row that was trained without a filter may stay.
  if (options_.keep_freqs()) {
    *freqs_.At(row) = Saturated(from.freqs == nullptr ? options_.filter_freq : from.freqs[i]);
  }
  if (options_.keep_versions && from.versions != nullptr) *versions_.At(row) = Version(from.versions[i]);
  for (size_t s = 0; s < from.slots.size(); ++s) {
    if (from.slots[s] != nullptr) std::copy_n(from.slots[s] + i * dim, dim, slots_[s].At(row));
  }
  return true;
}

void TableShard::ImportFiltered(const RowSources& from, int64_t i) {
  if (options_.filter_freq == 0) return;  // The filter was taken off.
  const int64_t key = from.filtered_keys[i];
  const uint64_t hash = index_.Hash(key);
  // A key that has a row no longer waits for one.
  if (index_.Find(hash, key, KeyOf()) != KeyIndex::kNone) return;
  const int64_t freq = from.filtered_freqs[i * from.filtered_stride];
  if (bloom_.on()) {
    bloom_.Add(key, freq);
    return;
  }
  const bool known = from.filtered_versions != nullptr;
  waiting_.Add(hash, key, freq,
               known ? from.filtered_versions[i * from.filtered_stride] : kNoVersion);
}

int64_t TableShard::rows() {
  std::lock_guard<std::mutex> lock(mu_);
  return index_.size();
}

int64_t TableShard::filtered() {
  std::lock_guard<std::mutex> lock(mu_);
  return waiting_.size();
}

int64_t TableShard::bytes() {
  std::lock_guard<std::mutex> lock(mu_);
  int64_t total = index_.bytes() + keys_.bytes() + values_.bytes() + freqs_.bytes() +
                  versions_.bytes() + waiting_.bytes() + bloom_.bytes();
  for (const RowColumn<float>& slot : slots_) total += slot.bytes();
  return total;
}

}  // namespace workbench
