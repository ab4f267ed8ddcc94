#include "dense/interaction/dot_interaction.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "test/support/check.h"

namespace workbench {
namespace {

using Floats = std::vector<float>;
using Places = std::vector<int64_t>;

// Vectors of examples, the gradient of their dots, and what was found.
struct Batch {
  int64_t examples, vectors, dim;
  Places places;
  Floats x, gradient, dots, of_x;

  Batch(std::mt19937_64& random, int64_t examples, int64_t vectors, int64_t dim, Places pairs)
      : examples(examples), vectors(vectors), dim(dim), places(std::move(pairs)) {
    std::normal_distribution<float> normal;
    x.resize(examples * vectors * dim);
    gradient.resize(examples * places.size());
    for (Floats* each : {&x, &gradient}) {
      for (float& value : *each) value = normal(random);
    }
    dots.assign(gradient.size(), -7);
    of_x.assign(x.size(), -7);
  }

  void Run(int64_t begin, int64_t end) {
    const DotPairs pairs(vectors, places);
    CHECK_EQ(pairs.size(), static_cast<int64_t>(places.size()));
    pairs.Multiply(x.data(), dim, begin, end, dots.data());
    pairs.MultiplyGradient(x.data(), gradient.data(), dim, begin, end, of_x.data());
  }

  const float* vector(int64_t example, int64_t i) const {
    return x.data() + (example * vectors + i) * dim;
  }
};

void CheckNear(double found, double expected) {
  if (std::abs(found - expected) <= 1e-5 * (1 + std::abs(expected))) return;
  std::cerr << "found " << found << ", expected " << expected << "\n";
  CHECK(false);
}

// Against doubles, the plain way.
void CheckBatch(const Batch& batch) {
  std::vector<double> of_x(batch.x.size());
  for (int64_t example = 0; example < batch.examples; ++example) {
    for (size_t p = 0; p < batch.places.size(); ++p) {
      const int64_t i = batch.places[p] / batch.vectors, j = batch.places[p] % batch.vectors;
      const float *a = batch.vector(example, i), *b = batch.vector(example, j);
      const int64_t at = example * static_cast<int64_t>(batch.places.size()) + static_cast<int64_t>(p);
      double dot = 0;
      for (int64_t k = 0; k < batch.dim; ++k) {
        dot += double{a[k]} * b[k];
        of_x[(example * batch.vectors + i) * batch.dim + k] += double{batch.gradient[at]} * b[k];
        of_x[(example * batch.vectors + j) * batch.dim + k] += double{batch.gradient[at]} * a[k];
      }
      CheckNear(batch.dots[at], dot);
    }
  }
  for (size_t i = 0; i < of_x.size(); ++i) CheckNear(batch.of_x[i], of_x[i]);
}

Places Below(int64_t vectors) {
  Places found;
  for (int64_t i = 0; i < vectors; ++i) {
    for (int64_t j = 0; j < i; ++j) found.push_back(i * vectors + j);
  }
  return found;
}

// Any pairs, some of them more than once, and of a vector with itself.
Places Drawn(std::mt19937_64& random, int64_t vectors) {
  Places found(random() % 12);
  for (int64_t& place : found) place = static_cast<int64_t>(random() % (vectors * vectors));
  return found;
}

TEST(DotsAreThoseOfDoubles) {
  std::mt19937_64 random(1);
  for (const int64_t vectors : {1, 2, 4, 5, 16, 17, 27, 33}) {
    for (const int64_t dim : {1, 3, 8, 16, 20, 64}) {
      Batch below(random, 3, vectors, dim, Below(vectors));
      below.Run(0, 3);
      CheckBatch(below);
      Batch drawn(random, 2, vectors, dim, Drawn(random, vectors));
      drawn.Run(0, 2);
      CheckBatch(drawn);
    }
  }
}

TEST(AnySplitHasTheSameBits) {
  std::mt19937_64 random(2);
  Batch whole(random, 9, 13, 10, Below(13));
  Batch split = whole;
  whole.Run(0, 9);
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 2}, {2, 3}, {3, 3}, {3, 9}}) {
    split.Run(begin, end);
  }
  CHECK(whole.dots == split.dots);
  CHECK(whole.of_x == split.of_x);
}

TEST(NumbersOfOneExampleStayInIt) {
  std::mt19937_64 random(3);
  Batch batch(random, 3, 5, 7, Below(5));
  for (int64_t k = 0; k < 7; ++k) batch.x[5 * 7 + k] = std::numeric_limits<float>::quiet_NaN();
  batch.Run(0, 3);
  for (size_t i = 0; i < batch.dots.size(); ++i) {
    // The first vector of the second example is in the first pair of each other one.
    const bool second = i / batch.places.size() == 1;
    const int64_t place = batch.places[i % batch.places.size()];
    CHECK_EQ(std::isnan(batch.dots[i]), second && place % 5 == 0);
  }
  for (size_t i = 0; i < batch.of_x.size(); ++i) {
    if (i / 35 != 1) CHECK(!std::isnan(batch.of_x[i]));
  }
}

TEST(NothingIsMadeOfNothing) {
  std::mt19937_64 random(4);
  Batch none(random, 0, 4, 8, Below(4));
  none.Run(0, 0);
  Batch no_pairs(random, 2, 4, 8, {});
  no_pairs.Run(0, 2);
  CHECK(no_pairs.of_x == Floats(64, 0.0f));
  Batch no_numbers(random, 2, 4, 0, Below(4));
  no_numbers.Run(0, 2);
  CHECK(no_numbers.dots == Floats(12, 0.0f));
}

}  // namespace
}  // namespace workbench
