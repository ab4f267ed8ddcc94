#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "lookup/id_columns.h"
#include "test/support/check.h"

namespace workbench {
namespace {

template <typename Id>
constexpr Id kLeast = std::numeric_limits<Id>::min();
template <typename Id>
constexpr Id kMost = std::numeric_limits<Id>::max();

TEST(IdsBelowZeroCountFromTheEnd) {
  const std::vector<int32_t> ids = {0, 4, -1, -5, -6, 7, kLeast<int32_t>, kMost<int32_t>};
  const int64_t count = static_cast<int64_t>(ids.size());
  std::vector<int32_t> counted(ids.size());
  const IdColumns<int32_t, int32_t> all = {ids.data(), 1, 1, count, 5, counted.data()};
  CountFromEnd(&all, 1, 0, count);
  CHECK(counted == (std::vector<int32_t>{0, 4, 4, 0, -1, 7, kLeast<int32_t> + 5,
                                         kMost<int32_t>}));
}

TEST(TheLeastIdAndTheLargestTableDoNotOverflow) {
  const int64_t ids[] = {kLeast<int64_t>, kMost<int64_t>, -1};
  int64_t counted[3];
  const IdColumns<int64_t, int64_t> all = {ids, 1, 1, 3, kMost<int64_t>, counted};
  CountFromEnd(&all, 1, 0, 3);
  CHECK_EQ(counted[0], -1);
  CHECK_EQ(counted[1], kMost<int64_t>);
  CHECK_EQ(counted[2], kMost<int64_t> - 1);
}

TEST(NumbersBecomeIdsTowardZero) {
  const float infinite = std::numeric_limits<float>::infinity();
  const std::vector<float> numbers = {
      -0.9f, 2.9f, -2.9f, 1e30f, -1e30f, infinite, -infinite, std::nanf(""), -2147483648.f,
      2147483648.f};
  const int64_t count = static_cast<int64_t>(numbers.size());
  std::vector<int32_t> few(numbers.size());
  std::vector<int64_t> many(numbers.size());
  const IdColumns<float, int32_t> to_few = {numbers.data(), 1, 1, count, 0, few.data()};
  const IdColumns<float, int64_t> to_many = {numbers.data(), 1, 1, count, 0, many.data()};
  CountFromEnd(&to_few, 1, 0, count);
  CountFromEnd(&to_many, 1, 0, count);
  constexpr int32_t kFew = kLeast<int32_t>;
  constexpr int64_t kMany = kLeast<int64_t>;
  CHECK(few == (std::vector<int32_t>{0, 2, -2, kFew, kFew, kFew, kFew, kFew, kFew, kFew}));
  CHECK(many == (std::vector<int64_t>{0, 2, -2, kMany, kMany, kMany, kMany, kMany, kFew,
                                      -static_cast<int64_t>(kFew)}));
}

TEST(WideIdsLoseTheirUpperBits) {
  const int64_t ids[] = {(int64_t{1} << 32) + 3, -1};
  int32_t counted[2];
  const IdColumns<int64_t, int32_t> all = {ids, 1, 1, 2, 7, counted};
  CountFromEnd(&all, 1, 0, 2);
  CHECK_EQ(counted[0], 3);
  CHECK_EQ(counted[1], 6);
}

// Each range once, of matrices of different heights, in every width.
TEST(ColumnsOfMatricesInRanges) {
  constexpr int64_t kColumns = 5;
  for (const int64_t heights : {int64_t{1}, kIdRowsAtOnce, 3 * kIdRowsAtOnce + 7}) {
    std::vector<int64_t> tall(heights * kColumns), low(3 * kColumns);
    std::iota(tall.begin(), tall.end(), -2 * kColumns);
    std::iota(low.begin(), low.end(), -kColumns);
    std::vector<int64_t> last(heights), pair(3 * 2), whole(heights * kColumns);
    const IdColumns<int64_t, int64_t> columns[] = {
        {tall.data() + kColumns - 1, kColumns, 1, heights, 100, last.data()},
        {low.data() + 1, kColumns, 2, 3, 10, pair.data()},
        {tall.data(), kColumns, kColumns, heights, 0, whole.data()}};
    for (int64_t begin = 0; begin < heights + kIdRowsAtOnce; begin += kIdRowsAtOnce) {
      CountFromEnd(columns, 3, begin, begin + kIdRowsAtOnce);
    }
    for (int64_t r = 0; r < heights; ++r) {
      const int64_t id = tall[r * kColumns + kColumns - 1];
      CHECK_EQ(last[r], id < 0 ? id + 100 : id);
    }
    for (int64_t r = 0; r < 3; ++r) {
      for (int64_t i = 0; i < 2; ++i) {
        const int64_t id = low[r * kColumns + 1 + i];
        CHECK_EQ(pair[r * 2 + i], id < 0 ? id + 10 : id);
      }
    }
    CHECK(whole == tall);
  }
}

}  // namespace
}  // namespace workbench
