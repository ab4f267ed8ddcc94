#include "transfers/packing.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "test/support/check.h"

namespace workbench {
namespace {

constexpr Elements kInt32{4, true}, kInt64{8, true}, kFloat{4, false};
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

std::string Written(const Packing& packing) {
  std::string bytes(packing.bytes(), '\0');
  packing.Write(bytes.data());
  return bytes;
}

// Packs one vector and reads it again; the bytes that it took.
template <typename Integer>
int64_t BytesOf(const std::vector<Integer>& values, Elements elements) {
  const int64_t count = static_cast<int64_t>(values.size());
  Packing packing;
  packing.Add(values.data(), count, elements, {count});
  const std::string bytes = Written(packing);
  Unpacking unpacking(bytes.data(), packing.bytes());
  std::vector<int64_t> sizes;
  CHECK(unpacking.ReadSizes(elements, &sizes));
  CHECK(sizes == std::vector<int64_t>{count});
  CHECK(unpacking.Holds(count));
  std::vector<Integer> found(values.size());
  unpacking.ReadElements(count, found.data());
  CHECK(found == values);
  CHECK(unpacking.done());
  return packing.bytes();
}

TEST(IntegersTakeWhatTheirRangeNeeds) {
  // Rank, size, width, least; then the elements.
  CHECK_EQ(BytesOf<int64_t>({7, 7, 7}, kInt64), 4 + 3);
  CHECK_EQ(BytesOf<int64_t>({-1, 254}, kInt64), 3 + 10 + 2);
  CHECK_EQ(BytesOf<int64_t>({0, 256}, kInt64), 4 + 2 * 2);
  CHECK_EQ(BytesOf<int64_t>({0, 65'536}, kInt64), 4 + 2 * 4);
  CHECK_EQ(BytesOf<int64_t>({0, int64_t{1} << 32}, kInt64), 4 + 2 * 8);
  CHECK_EQ(BytesOf<int32_t>({100, 101, 102}, kInt32), 4 + 3);
  CHECK_EQ(BytesOf<int64_t>({}, kInt64), 4);
}

TEST(ExtremesAreKept) {
  BytesOf<int64_t>({kLeast, kMost, 0, -1}, kInt64);
  BytesOf<int64_t>({kLeast, kLeast + 1}, kInt64);
  BytesOf<int64_t>({kMost, kMost - 300}, kInt64);
  BytesOf<int32_t>({std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()},
                   kInt32);
}

TEST(RandomIntegersOfEachWidthAreKept) {
  std::mt19937_64 random(7);
  for (int bits = 0; bits < 64; ++bits) {
    std::vector<int64_t> values(50);
    const int64_t base = static_cast<int64_t>(random());
    for (int64_t& each : values) {
      each = static_cast<int64_t>(static_cast<uint64_t>(base) + (random() >> (63 - bits)));
    }
    BytesOf(values, kInt64);
  }
}

TEST(SeveralTensorsComeInTheirOrder) {
  const std::vector<int64_t> ids = {9'999, 3, 5'000};
  const std::vector<float> rows = {1.5f, -2, 0, 3, 4, 5};
  const int32_t step = -12;
  Packing packing;
  packing.Add(ids.data(), 3, kInt64, {3});
  packing.Add(rows.data(), 6, kFloat, {3, 2});
  packing.Add(nullptr, 0, kFloat, {0, 2});
  packing.Add(&step, 1, kInt32, {});
  const std::string bytes = Written(packing);
  Unpacking unpacking(bytes.data(), packing.bytes());
  std::vector<int64_t> sizes, found_ids(3);
  std::vector<float> found_rows(6);
  int32_t found_step = 0;
  CHECK(unpacking.ReadSizes(kInt64, &sizes) && unpacking.Holds(3));
  unpacking.ReadElements(3, found_ids.data());
  CHECK(unpacking.ReadSizes(kFloat, &sizes) && unpacking.Holds(6));
  CHECK(sizes == (std::vector<int64_t>{3, 2}));
  unpacking.ReadElements(6, found_rows.data());
  CHECK(unpacking.ReadSizes(kFloat, &sizes));
  CHECK(sizes == (std::vector<int64_t>{0, 2}));
  unpacking.ReadElements(0, nullptr);
  CHECK(unpacking.ReadSizes(kInt32, &sizes) && unpacking.Holds(1));
  CHECK(sizes.empty());
  unpacking.ReadElements(1, &found_step);
  CHECK(found_ids == ids && found_rows == rows);
  CHECK_EQ(found_step, step);
  CHECK(unpacking.done());
}

// Reads as a kernel does, and never beyond the bytes.
void ReadAny(const std::string& bytes, const std::vector<Elements>& kinds) {
  Unpacking unpacking(bytes.data(), static_cast<int64_t>(bytes.size()));
  for (const Elements& each : kinds) {
    std::vector<int64_t> sizes;
    if (!unpacking.ReadSizes(each, &sizes)) return;
    int64_t count = 1;
    for (int64_t size : sizes) {
      CHECK(size >= 0);
      if (__builtin_mul_overflow(count, size, &count)) return;
    }
    if (!unpacking.Holds(count)) return;
    CHECK(count <= static_cast<int64_t>(bytes.size()));
    std::vector<char> found(count * each.bytes);
    unpacking.ReadElements(count, found.data());
  }
}

TEST(DamagedBytesAreNotReadBeyondTheirEnd) {
  const std::vector<int64_t> ids = {9'999, 3, 5'000};
  const std::vector<float> rows = {1.5f, -2, 0, 3};
  Packing packing;
  packing.Add(ids.data(), 3, kInt64, {3});
  packing.Add(rows.data(), 4, kFloat, {2, 2});
  const std::string whole = Written(packing);
  std::mt19937_64 random(3);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = whole.substr(0, random() % (whole.size() + 1));
    for (uint64_t i = random() % 4; i > 0 && !bytes.empty(); --i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    ReadAny(bytes, {kInt64, kFloat});
    ReadAny(bytes, {kFloat, kInt32, kInt64});
  }
}

}  // namespace
}  // namespace workbench
