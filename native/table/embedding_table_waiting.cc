#include "table/embedding_table_waiting.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace workbench {

WaitingKeys::WaitingKeys(uint64_t seed, int64_t most, bool keep_versions)
    : most_(std::max<int64_t>(2, most)), keep_versions_(keep_versions), index_(seed) {}

int64_t WaitingKeys::Add(uint64_t hash, int64_t key, int64_t count, int64_t step) {
  int64_t row = index_.Find(hash, key, KeyOf());
  if (row == KeyIndex::kNone) {
    if (size() >= most_) DropHalf();
    row = index_.size();
    index_.Append(hash, KeyOf());
    keys_.push_back(key);
    counts_.push_back(0);
    if (keep_versions_) versions_.push_back(kNoVersion);
  }
  if (keep_versions_) versions_[row] = Version(step);
  return counts_[row] = Saturated(counts_[row] + int64_t{Saturated(count)});
}

void WaitingKeys::Remove(uint64_t hash, int64_t key) {
  const int64_t row = index_.Find(hash, key, KeyOf());
  if (row == KeyIndex::kNone) return;
  index_.Remove(row, KeyOf());
  keys_[row] = keys_.back();
  counts_[row] = counts_.back();
  keys_.pop_back();
  counts_.pop_back();
  if (!keep_versions_) return;
  versions_[row] = versions_.back();
  versions_.pop_back();
}

void WaitingKeys::Evict(int64_t step, int64_t steps_to_live) {
  if (!keep_versions_) return;
  std::vector<bool> marked(size());
  for (int64_t row = 0; row < size(); ++row) {
    marked[row] = !IsOld(step, steps_to_live, &versions_[row]);
  }
  Keep(marked);
}

void WaitingKeys::DropHalf() {
  std::vector<int64_t> rows(size());
  std::iota(rows.begin(), rows.end(), 0);
  const auto rank = [this](int64_t row) {
    return std::make_tuple(counts_[row], keep_versions_ ? versions_[row] : 0, row);
  };
  const auto half = rows.begin() + size() / 2;
  std::nth_element(rows.begin(), half, rows.end(),
                   [&](int64_t a, int64_t b) { return rank(a) < rank(b); });
  std::vector<bool> marked(size());
  for (auto row = half; row != rows.end(); ++row) marked[*row] = true;
  Keep(marked);
}

void WaitingKeys::Keep(const std::vector<bool>& marked) {
  const int64_t rows = size();
  index_.Clear();
  for (int64_t row = 0; row < rows; ++row) {
    if (!marked[row]) continue;
    const int64_t to = index_.size();
    keys_[to] = keys_[row];
    counts_[to] = counts_[row];
    if (keep_versions_) versions_[to] = versions_[row];
    index_.Append(index_.Hash(keys_[to]), KeyOf());
  }
  keys_.resize(size());
  counts_.resize(size());
  if (keep_versions_) versions_.resize(size());
  Shrink(&keys_);
  Shrink(&counts_);
  Shrink(&versions_);
}

void WaitingKeys::Clear() {
  index_.Clear();
  Free(&keys_);
  Free(&counts_);
  Free(&versions_);
}

int64_t WaitingKeys::bytes() const {
  return index_.bytes() +
         static_cast<int64_t>((keys_.capacity() + versions_.capacity()) * sizeof(int64_t) +
                              counts_.capacity() * sizeof(uint32_t));
}

BloomCounts::BloomCounts(int64_t counters, int hashes, int counter_bytes)
    : counters_(counters),
      hashes_(hashes),
      bits_(8 * counter_bytes),
      in_word_(8 / counter_bytes),
      words_((counters + in_word_ - 1) / in_word_) {}

int64_t BloomCounts::Add(int64_t key, int64_t count) {
  // A checkpoint keeps the counters, so that these hashes have no seed of their own.
  const uint64_t first = HashKey(key, 1), step = HashKey(key, 2) | 1;
  const auto counter = [&](int i) {
    return static_cast<int64_t>((first + static_cast<uint64_t>(i) * step) %
                                static_cast<uint64_t>(counters_));
  };
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (int i = 0; i < hashes_; ++i) least = std::min(least, At(counter(i)));
  const uint64_t most = bits_ == 64 ? kMostFreq : (uint64_t{1} << bits_) - 1;
  const uint64_t now = std::min(std::min<uint64_t>(least, kMostFreq) + Saturated(count), most);
  // Only counters that are below the key's count: others are other keys' already.
  for (int i = 0; i < hashes_; ++i) {
    if (At(counter(i)) < now) Set(counter(i), now);
  }
  return static_cast<int64_t>(now);
}

void BloomCounts::Clear() { std::fill(words_.begin(), words_.end(), 0); }

void BloomCounts::Export(int64_t* to) const { std::copy(words_.begin(), words_.end(), to); }

void BloomCounts::Import(const int64_t* from) { std::copy_n(from, words_.size(), words_.begin()); }

uint64_t BloomCounts::At(int64_t counter) const {
  const uint64_t word = words_[counter / in_word_] >> (counter % in_word_ * bits_);
  return bits_ == 64 ? word : word & ((uint64_t{1} << bits_) - 1);
}

void BloomCounts::Set(int64_t counter, uint64_t value) {
  const int64_t shift = counter % in_word_ * bits_;
  const uint64_t mask = bits_ == 64 ? ~uint64_t{0} : ((uint64_t{1} << bits_) - 1) << shift;
  uint64_t* word = &words_[counter / in_word_];
  *word = (*word & ~mask) | value << shift;
}

}  // namespace workbench
