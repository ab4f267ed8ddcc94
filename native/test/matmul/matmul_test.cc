#include "dense/matmul/matmul.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "test/support/check.h"

namespace workbench {
namespace {

using Floats = std::vector<float>;

constexpr float kUntouched = -7;

// Two factors, and what their product must be.
struct Given {
  int64_t rows, columns, inner;
  bool transpose_a, transpose_b;
  Floats a, b, bias;
  bool relu = false;

  Given(std::mt19937_64& random, int64_t rows, int64_t columns, int64_t inner, int transposed)
      : rows(rows), columns(columns), inner(inner), transpose_a(transposed & 1),
        transpose_b(transposed & 2), a(rows * inner), b(inner * columns) {
    for (Floats* each : {&a, &b}) Draw(random, each);
  }

  static void Draw(std::mt19937_64& random, Floats* out) {
    std::normal_distribution<float> normal;
    for (float& value : *out) value = normal(random);
  }

  MatMul Planned(int64_t parts, const MatMulKernel& kernel) const {
    const float* biases = bias.empty() ? nullptr : bias.data();
    const Product product{a.data(),    b.data(),    rows,   columns, inner,
                          transpose_a, transpose_b, biases, relu};
    return MatMul(product, parts, kernel);
  }

  Floats Run(int64_t parts, const MatMulKernel& kernel) const {
    const MatMul product = Planned(parts, kernel);
    Floats packed(product.packed_size()), c(rows * columns, kUntouched);
    product.Pack(0, product.copies(), packed.data());
    product.Multiply(packed.data(), 0, product.blocks(), c.data());
    return c;
  }

  float* at_a(int64_t row, int64_t k) { return &a[transpose_a ? k * rows + row : row * inner + k]; }

  std::vector<double> Expected() const {
    std::vector<double> sums;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        double sum = bias.empty() ? 0 : bias[column];
        for (int64_t k = 0; k < inner; ++k) {
          sum += double{a[transpose_a ? k * rows + row : row * inner + k]} *
                 b[transpose_b ? column * inner + k : k * columns + column];
        }
        sums.push_back(relu ? std::max(sum, 0.0) : sum);
      }
    }
    return sums;
  }
};

void CheckProduct(const Given& given, const std::vector<int64_t>& parts,
                  const MatMulKernel& kernel) {
  const std::vector<double> expected = given.Expected();
  const double near = 1e-5 * std::sqrt(1.0 + given.inner);
  for (const int64_t each : parts) {
    const Floats found = given.Run(each, kernel);
    for (size_t i = 0; i < found.size(); ++i) CHECK(std::abs(found[i] - expected[i]) < near);
  }
}

// Sizes about those of tiles, panels, blocks and parts of `inner`.
constexpr int64_t kSizes[][3] = {
    {1, 1, 1},     {6, 16, 16},   {5, 15, 3},    {7, 17, 17},    {8, 48, 16},   {9, 33, 15},
    {12, 64, 31},  {13, 65, 33},  {1, 200, 40},  {200, 1, 40},   {129, 49, 20}, {193, 20, 9},
    {61, 70, 257}, {64, 64, 512}, {385, 33, 300}, {17, 290, 513}, {3, 5, 0}};

TEST(ProductsAreThoseOfDoubles) {
  std::mt19937_64 random(1);
  for (const MatMulKernel* kernel : MatMulKernels()) {
    for (const auto& [rows, columns, inner] : kSizes) {
      for (int transposed = 0; transposed < 4; ++transposed) {
        const Given given(random, rows, columns, inner, transposed);
        CheckProduct(given, {1, 2, 3, 8, 1000}, *kernel);
      }
    }
  }
}

TEST(BiasesAreAddedAndWhatIsBelowZeroIsLeftOut) {
  std::mt19937_64 random(2);
  for (const MatMulKernel* kernel : MatMulKernels()) {
    for (const auto& [rows, columns, inner] : kSizes) {
      for (int ending = 1; ending < 4; ++ending) {
        Given given(random, rows, columns, inner, 0);
        given.relu = ending & 1;
        if (ending & 2) {
          given.bias.resize(columns);
          Given::Draw(random, &given.bias);
        }
        CheckProduct(given, {2}, *kernel);
      }
    }
  }
}

TEST(AnySplitHasTheSameBits) {
  std::mt19937_64 random(3);
  for (const MatMulKernel* kernel : MatMulKernels()) {
    for (int transposed = 0; transposed < 4; ++transposed) {
      const Given given(random, 100, 90, 700, transposed);
      const Floats whole = given.Run(1, *kernel);
      for (const int64_t parts : {2, 5, 64}) CHECK(given.Run(parts, *kernel) == whole);
    }
  }
}

TEST(BlocksAreDoneInAnyOrderAndAtOnce) {
  std::mt19937_64 random(4);
  for (const MatMulKernel* kernel : MatMulKernels()) {
    for (int transposed = 0; transposed < 4; ++transposed) {
      const Given given(random, 400, 150, 280, transposed);
      const MatMul planned = given.Planned(8, *kernel);
      CHECK(planned.blocks() >= 8);
      Floats packed(planned.packed_size()), c(given.rows * given.columns, kUntouched);
      const auto on_two = [](int64_t count, auto&& part) {
        std::thread other([&] {
          for (int64_t i = count / 2; i < count; ++i) part(i);
        });
        for (int64_t i = count / 2 - 1; i >= 0; --i) part(i);
        other.join();
      };
      on_two(planned.copies(), [&](int64_t i) { planned.Pack(i, i + 1, packed.data()); });
      on_two(planned.blocks(),
             [&](int64_t i) { planned.Multiply(packed.data(), i, i + 1, c.data()); });
      CHECK(c == given.Run(1, *kernel));
    }
  }
}

TEST(BlocksAreEvenWhereThereIsEnough) {
  std::mt19937_64 random(5);
  const Given tall(random, 512, 48, 4, 0), wide(random, 6, 768, 4, 0), small(random, 3, 5, 4, 0);
  for (const MatMulKernel* kernel : MatMulKernels()) {
    CHECK_EQ(tall.Planned(4, *kernel).blocks(), 4);
    CHECK(tall.Planned(1, *kernel).blocks() <= 4);
    CHECK_EQ(wide.Planned(4, *kernel).blocks(), 4);
    CHECK_EQ(small.Planned(64, *kernel).blocks(), 1);
  }
}

TEST(NumbersOfOneRowStayInIt) {
  std::mt19937_64 random(6);
  for (const MatMulKernel* kernel : MatMulKernels()) {
    for (int transposed = 0; transposed < 4; ++transposed) {
      Given given(random, 9, 18, 20, transposed);
      for (int64_t k = 0; k < 20; ++k) *given.at_a(7, k) = std::numeric_limits<float>::quiet_NaN();
      given.relu = true;
      const Floats found = given.Run(1, *kernel);
      for (int64_t i = 0; i < 9 * 18; ++i) CHECK_EQ(std::isfinite(found[i]), i / 18 != 7);
    }
  }
}

}  // namespace
}  // namespace workbench
