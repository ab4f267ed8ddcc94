// The sums of the gradients of a table's rows, and of their squares.

#include <cmath>
#include <cstdint>
#include <iostream>
#include <random>
#include <vector>

#include "combine/combine.h"
#include "test/support/check.h"

namespace workbench {
namespace {

// Examples with a gradient each, and rows of a table that some of them asked for.
struct Touched {
  std::vector<float> values, factors;
  std::vector<const float*> gradients;
  std::vector<int32_t> firsts{0}, examples;
  TouchedRows<float> in;
  int64_t rows;

  Touched(std::mt19937_64& random, int64_t dim, int64_t rows) : rows(rows) {
    std::normal_distribution<float> normal;
    const int64_t count = 1 + random() % 30;
    values.resize(count * dim);
    for (float& value : values) value = normal(random);
    for (int64_t i = 0; i < count; ++i) {
      gradients.push_back(values.data() + i * dim);
      factors.push_back(normal(random));
    }
    for (int64_t row = 0; row < rows; ++row) {
      // Also rows that nothing asked for.
      for (int64_t i = random() % 9; i > 0; --i) examples.push_back(random() % count);
      firsts.push_back(static_cast<int32_t>(examples.size()));
    }
    in = {dim, firsts.data(), examples.data(), gradients.data(), factors.data()};
  }

  // [row], then the sum of a power of what is summed, of column c, and of how large its parts are.
  double Sum(int64_t row, int64_t c, int power, double* size) const {
    double sum = *size = 0;
    for (int32_t at = firsts[row]; at < firsts[row + 1]; ++at) {
      const double each = double{gradients[examples[at]][c]} * factors[examples[at]];
      sum += std::pow(each, power);
      *size += std::abs(std::pow(each, power));
    }
    return sum;
  }
};

constexpr int64_t kDims[] = {1, 7, 8, 15, 16, 17, 40, 64, 65, 130};

TEST(SumsAndSquaresAreThoseOfDoubles) {
  std::mt19937_64 random(1);
  for (const int64_t dim : kDims) {
    for (int round = 0; round < 10; ++round) {
      const Touched touched(random, dim, 1 + random() % 20);
      std::vector<float> out(touched.rows * 2 * dim, NAN);
      SumGradientsAndSquares(touched.in, 0, touched.rows, out.data());
      for (int64_t row = 0; row < touched.rows; ++row) {
        for (int64_t i = 0; i < 2 * dim; ++i) {
          double size;
          const double expected = touched.Sum(row, i % dim, i < dim ? 1 : 2, &size);
          CHECK(std::abs(out[row * 2 * dim + i] - expected) <= 2e-6 * size);
        }
      }
    }
  }
}

TEST(SumsAreTheSameBitsWithSquaresAndWithout) {
  std::mt19937_64 random(2);
  for (const int64_t dim : kDims) {
    const Touched touched(random, dim, 12);
    std::vector<float> both(touched.rows * 2 * dim, NAN), sums(touched.rows * dim, NAN);
    SumGradientsAndSquares(touched.in, 0, touched.rows, both.data());
    SumGradients(touched.in, 0, touched.rows, sums.data());
    for (int64_t row = 0; row < touched.rows; ++row) {
      for (int64_t c = 0; c < dim; ++c) CHECK_EQ(both[row * 2 * dim + c], sums[row * dim + c]);
    }
  }
}

TEST(AnySplitOfTheRowsGivesTheSameBits) {
  std::mt19937_64 random(3);
  for (const int64_t dim : kDims) {
    const Touched touched(random, dim, 20);
    std::vector<float> whole(touched.rows * 2 * dim, NAN), parts = whole;
    SumGradientsAndSquares(touched.in, 0, touched.rows, whole.data());
    for (int64_t end = touched.rows; end > 0;) {
      const int64_t begin = random() % end;
      SumGradientsAndSquares(touched.in, begin, end, parts.data() + begin * 2 * dim);
      end = begin;
    }
    CHECK(whole == parts);
  }
}

TEST(NothingBehindTheRangeIsWritten) {
  std::mt19937_64 random(4);
  const Touched touched(random, 5, 8);
  std::vector<float> out(8 * 10, -7);
  SumGradientsAndSquares(touched.in, 3, 6, out.data());
  for (size_t i = 3 * 10; i < out.size(); ++i) CHECK_EQ(out[i], -7.0f);
  SumGradientsAndSquares(touched.in, 8, 8, out.data() + 30);
  CHECK_EQ(out[30], -7.0f);
}

}  // namespace
}  // namespace workbench
