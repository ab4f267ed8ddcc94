#include "matmul/matmul.h"

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
struct Product {
  int64_t rows, columns, inner;
  bool transpose_a, transpose_b;
  Floats a, b;

  Product(std::mt19937_64& random, int64_t rows, int64_t columns, int64_t inner, int transposed)
      : rows(rows), columns(columns), inner(inner), transpose_a(transposed & 1),
        transpose_b(transposed & 2), a(rows * inner), b(inner * columns) {
    std::normal_distribution<float> normal;
    for (Floats* each : {&a, &b}) {
      for (float& value : *each) value = normal(random);
    }
  }

  MatMul Planned(int64_t parts) const {
    return MatMul({a.data(), b.data(), rows, columns, inner, transpose_a, transpose_b}, parts);
  }

  Floats Run(int64_t parts = 1) const {
    const MatMul product = Planned(parts);
    Floats packed(product.packed_size()), c(rows * columns, kUntouched);
    product.Pack(0, product.panels(), packed.data());
    product.Multiply(packed.data(), 0, product.blocks(), c.data());
    return c;
  }

  float* at_a(int64_t row, int64_t k) { return &a[transpose_a ? k * rows + row : row * inner + k]; }

  double Expected(int64_t row, int64_t column) const {
    double sum = 0;
    for (int64_t k = 0; k < inner; ++k) {
      sum += double{a[transpose_a ? k * rows + row : row * inner + k]} *
             b[transpose_b ? column * inner + k : k * columns + column];
    }
    return sum;
  }
};

void CheckProduct(const Product& product, int64_t parts) {
  const Floats found = product.Run(parts);
  const double near = 1e-5 * std::sqrt(static_cast<double>(product.inner));
  for (int64_t row = 0; row < product.rows; ++row) {
    for (int64_t column = 0; column < product.columns; ++column) {
      CHECK(std::abs(found[row * product.columns + column] - product.Expected(row, column)) < near);
    }
  }
}

// Sizes about those of tiles, panels, blocks and parts of `inner`.
TEST(ProductsAreThoseOfDoubles) {
  std::mt19937_64 random(1);
  constexpr int64_t kSizes[][3] = {{1, 1, 1},    {6, 16, 16},  {5, 15, 3},   {7, 17, 17},
                                   {12, 64, 31}, {13, 65, 33}, {1, 200, 40}, {200, 1, 40},
                                   {193, 20, 9}, {61, 70, 257}, {64, 64, 512}, {385, 33, 300}};
  for (const auto& [rows, columns, inner] : kSizes) {
    for (int transposed = 0; transposed < 4; ++transposed) {
      const Product product(random, rows, columns, inner, transposed);
      for (const int64_t parts : {1, 2, 3, 8, 1000}) CheckProduct(product, parts);
    }
  }
}

TEST(AnySplitHasTheSameBits) {
  std::mt19937_64 random(2);
  for (int transposed = 0; transposed < 4; ++transposed) {
    const Product product(random, 100, 90, 300, transposed);
    const Floats whole = product.Run();
    for (const int64_t parts : {2, 5, 64}) CHECK(product.Run(parts) == whole);
  }
}

TEST(BlocksAreDoneInAnyOrderAndAtOnce) {
  std::mt19937_64 random(3);
  for (int transposed = 0; transposed < 4; ++transposed) {
    const Product product(random, 400, 150, 280, transposed);
    const MatMul planned = product.Planned(8);
    CHECK(planned.blocks() >= 8);
    Floats packed(planned.packed_size()), c(product.rows * product.columns, kUntouched);
    const auto on_two = [](int64_t count, auto&& part) {
      std::thread other([&] {
        for (int64_t i = count / 2; i < count; ++i) part(i);
      });
      for (int64_t i = count / 2 - 1; i >= 0; --i) part(i);
      other.join();
    };
    on_two(planned.panels(), [&](int64_t i) { planned.Pack(i, i + 1, packed.data()); });
    on_two(planned.blocks(), [&](int64_t i) { planned.Multiply(packed.data(), i, i + 1, c.data()); });
    CHECK(c == product.Run());
  }
}

TEST(BlocksAreEvenWhereThereIsEnough) {
  std::mt19937_64 random(4);
  const Product tall(random, 512, 16, 4, 0), wide(random, 6, 512, 4, 0), small(random, 3, 5, 4, 0);
  CHECK_EQ(tall.Planned(4).blocks(), 4);
  CHECK_EQ(tall.Planned(1).blocks(), 3);
  CHECK_EQ(wide.Planned(4).blocks(), 4);
  CHECK_EQ(small.Planned(64).blocks(), 1);
}

TEST(NumbersOfOneRowStayInIt) {
  std::mt19937_64 random(5);
  for (int transposed = 0; transposed < 4; ++transposed) {
    Product product(random, 9, 18, 20, transposed);
    for (int64_t k = 0; k < 20; ++k) *product.at_a(7, k) = std::numeric_limits<float>::infinity();
    const Floats found = product.Run();
    for (int64_t i = 0; i < 9 * 18; ++i) CHECK_EQ(std::isfinite(found[i]), i / 18 != 7);
  }
}

}  // namespace
}  // namespace workbench
