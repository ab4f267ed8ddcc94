#include "dense/interaction/fm_interaction.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "test/support/check.h"

namespace workbench {
namespace {

using Floats = std::vector<float>;

struct Batch {
  int64_t examples, vectors, dim;
  Floats x, gradient, made, of_x;

  Batch(std::mt19937_64& random, int64_t examples, int64_t vectors, int64_t dim)
      : examples(examples), vectors(vectors), dim(dim) {
    std::normal_distribution<float> normal;
    x.resize(examples * vectors * dim);
    gradient.resize(examples * dim);
    for (Floats* each : {&x, &gradient}) {
      for (float& value : *each) value = normal(random);
    }
    made.assign(gradient.size(), -7);
    of_x.assign(x.size(), -7);
  }

  void Run(int64_t begin, int64_t end) {
    FmInteraction(x.data(), vectors, dim, begin, end, made.data());
    FmInteractionGradient(x.data(), gradient.data(), vectors, dim, begin, end, of_x.data());
  }
};

void CheckNear(double found, double expected) {
  if (std::abs(found - expected) <= 1e-5 * (1 + std::abs(expected))) return;
  std::cerr << "found " << found << ", expected " << expected << "\n";
  CHECK(false);
}

// Against doubles, all pairs one by one.
void CheckBatch(const Batch& batch) {
  for (int64_t e = 0; e < batch.examples; ++e) {
    for (int64_t d = 0; d < batch.dim; ++d) {
      const auto at = [&](int64_t i) { return (e * batch.vectors + i) * batch.dim + d; };
      double pairs = 0;
      for (int64_t i = 0; i < batch.vectors; ++i) {
        double others = 0;
        for (int64_t j = 0; j < batch.vectors; ++j) {
          if (i != j) others += batch.x[at(j)];
        }
        pairs += batch.x[at(i)] * others;
        CheckNear(batch.of_x[at(i)], 2 * batch.gradient[e * batch.dim + d] * others);
      }
      CheckNear(batch.made[e * batch.dim + d], pairs);
    }
  }
}

TEST(InteractionsAndGradientsAreThoseOfAllPairs) {
  std::mt19937_64 random(1);
  for (int64_t examples : {0, 1, 5}) {
    for (int64_t vectors : {0, 1, 2, 26}) {
      for (int64_t dim : {0, 1, 7, 8, 9, 16, 33}) {
        Batch batch(random, examples, vectors, dim);
        batch.Run(0, examples);
        CheckBatch(batch);
      }
    }
  }
}

TEST(AnySplitGivesTheSameBits) {
  std::mt19937_64 random(2);
  Batch whole(random, 40, 13, 19);
  Batch parts = whole;
  whole.Run(0, 40);
  for (int64_t begin = 0; begin < 40; begin += 9) parts.Run(begin, std::min<int64_t>(40, begin + 9));
  CHECK(parts.made == whole.made);
  CHECK(parts.of_x == whole.of_x);
}

TEST(WhatIsNoNumberStaysInItsColumn) {
  for (float strange : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    std::mt19937_64 random(3);
    Batch batch(random, 3, 4, 10);
    batch.x[(1 * 4 + 2) * 10 + 3] = strange;
    batch.Run(0, 3);
    for (int64_t i = 0; i < 30; ++i) CHECK_EQ(std::isfinite(batch.made[i]), i != 13);
  }
}

}  // namespace
}  // namespace workbench
