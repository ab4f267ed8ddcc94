#include "lookup/unique/id_order.h"

#include <algorithm>
#include <array>
#include <utility>

namespace workbench {
namespace {

constexpr int kIdBits = 32;  // above the position in a word
constexpr int kMostDigitBits = 11;
constexpr int kMostPasses = (kIdBits + kMostDigitBits - 1) / kMostDigitBits;

int BitsOf(uint64_t value) {
  int bits = 0;
  for (; value != 0; value >>= 1) ++bits;
  return bits;
}

}  // namespace

template <typename Id>
const uint64_t* SortTagged(const Id* ids, const int32_t* tags, int64_t count, uint64_t* scratch,
                           Id* least) {
  if (count == 0) return scratch;
  Id most = *least = ids[0];
  for (int64_t i = 1; i < count; ++i) {
    *least = std::min(*least, ids[i]);
    most = std::max(most, ids[i]);
  }
  const uint64_t base = static_cast<uint64_t>(*least);
  const uint64_t range = static_cast<uint64_t>(most) - base;
  if (range >> kIdBits != 0) return nullptr;

  // Least digit first; the passes' counts are taken in one go.
  const int bits = BitsOf(range);
  const int passes = (bits + kMostDigitBits - 1) / kMostDigitBits;
  const int digit = passes == 0 ? 0 : (bits + passes - 1) / passes;
  const uint64_t mask = (uint64_t{1} << digit) - 1;
  std::array<std::array<int32_t, 1 << kMostDigitBits>, kMostPasses> next;
  for (int p = 0; p < passes; ++p) std::fill_n(next[p].begin(), mask + 1, 0);
  uint64_t *from = scratch, *to = scratch + count;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t offset = static_cast<uint64_t>(ids[i]) - base;
    from[i] = offset << kIdBits | static_cast<uint64_t>(tags == nullptr ? i : tags[i]);
    for (int p = 0; p < passes; ++p) ++next[p][offset >> (p * digit) & mask];
  }
  for (int p = 0; p < passes; ++p) {
    int32_t before = 0;
    for (uint64_t d = 0; d <= mask; ++d) before += std::exchange(next[p][d], before);
    const int shift = kIdBits + p * digit;
    for (int64_t i = 0; i < count; ++i) to[next[p][from[i] >> shift & mask]++] = from[i];
    std::swap(from, to);
  }
  return from;
}

template <typename Id>
bool OrderIds(const Id* ids, int64_t count, uint64_t* scratch, int32_t* order) {
  if (count == 0) return true;
  Id least = 0;
  const uint64_t* sorted = SortTagged(ids, nullptr, count, scratch, &least);
  if (sorted == nullptr) return false;
  for (int64_t i = 0; i < count; ++i) order[i] = static_cast<int32_t>(sorted[i]);
  return true;
}

template const uint64_t* SortTagged(const int32_t*, const int32_t*, int64_t, uint64_t*, int32_t*);
template const uint64_t* SortTagged(const int64_t*, const int32_t*, int64_t, uint64_t*, int64_t*);
template bool OrderIds(const int32_t*, int64_t, uint64_t*, int32_t*);
template bool OrderIds(const int64_t*, int64_t, uint64_t*, int32_t*);

}  // namespace workbench
