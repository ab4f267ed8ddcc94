#include "dense/norm/batch_norm.h"

#include <cmath>
#include <random>
#include <vector>

#include "test/support/check.h"

namespace workbench {
namespace {

using Floats = std::vector<float>;

constexpr float kEpsilon = 1e-3f;

// A matrix to normalize, and what was found.
struct Batch {
  int64_t rows, columns;
  Floats x, gamma, beta, gradient;
  Floats y, mean, variance, of_x, of_gamma, of_beta, of_bias;

  Batch(std::mt19937_64& random, int64_t rows, int64_t columns, float offset)
      : rows(rows), columns(columns) {
    std::normal_distribution<float> normal;
    for (Floats* each : {&x, &gradient}) each->resize(rows * columns);
    for (Floats* each : {&gamma, &beta}) each->resize(columns);
    for (Floats* each : {&x, &gradient, &gamma, &beta}) {
      for (float& value : *each) value = normal(random);
    }
    for (float& value : x) value += offset;
    y.assign(x.size(), -7);
    of_x = y;
    mean.assign(columns, -7);
    variance = of_gamma = of_beta = of_bias = mean;
  }

  void Run(int64_t begin, int64_t end) {
    const NormedColumns in{x.data(), rows, columns, gamma.data(), kEpsilon};
    NormalizeColumns(in, beta.data(), begin, end, y.data(), mean.data(), variance.data());
    NormalizeColumnsGradient(in, mean.data(), variance.data(), gradient.data(), begin, end,
                             {of_x.data(), of_gamma.data(), of_beta.data()});
  }

  // The gradients once more, where x is of a ReLU.
  void RunOfRelu(int64_t begin, int64_t end) {
    const NormedColumns in{x.data(), rows, columns, gamma.data(), kEpsilon};
    NormalizeColumnsGradient(in, mean.data(), variance.data(), gradient.data(), begin, end,
                             {of_x.data(), of_gamma.data(), of_beta.data(), of_bias.data()});
  }
};

void CheckNear(double found, double expected) {
  if (std::abs(found - expected) <= 2e-5 * (1 + std::abs(expected))) return;
  std::cerr << "found " << found << ", expected " << expected << "\n";
  CHECK(false);
}

// The moments of a column in doubles, the plain way.
struct Moments {
  double mean = 0, variance = 0, inverse;

  Moments(const Batch& batch, int64_t column) {
    const auto x = [&](int64_t row) { return batch.x[row * batch.columns + column]; };
    for (int64_t row = 0; row < batch.rows; ++row) mean += x(row);
    mean /= batch.rows;
    for (int64_t row = 0; row < batch.rows; ++row) variance += std::pow(x(row) - mean, 2);
    variance /= batch.rows;
    inverse = 1 / std::sqrt(variance + kEpsilon);
  }
};

void CheckForward(const Batch& batch, int64_t column) {
  const Moments moments(batch, column);
  CheckNear(batch.mean[column], moments.mean);
  CheckNear(batch.variance[column], moments.variance);
  for (int64_t row = 0; row < batch.rows; ++row) {
    const int64_t at = row * batch.columns + column;
    const double normal = (batch.x[at] - moments.mean) * moments.inverse;
    CheckNear(batch.y[at], normal * batch.gamma[column] + batch.beta[column]);
  }
}

void CheckColumn(const Batch& batch, int64_t column) {
  CheckForward(batch, column);
  const Moments moments(batch, column);
  const auto at = [&](int64_t row) { return row * batch.columns + column; };
  const auto normal = [&](int64_t row) {
    return (batch.x[at(row)] - moments.mean) * moments.inverse;
  };
  double sum = 0, products = 0;
  for (int64_t row = 0; row < batch.rows; ++row) {
    sum += batch.gradient[at(row)];
    products += batch.gradient[at(row)] * normal(row);
  }
  CheckNear(batch.of_beta[column], sum);
  CheckNear(batch.of_gamma[column], products);
  for (int64_t row = 0; row < batch.rows; ++row) {
    const double of_x = batch.gamma[column] * moments.inverse *
                        (batch.gradient[at(row)] - (sum + normal(row) * products) / batch.rows);
    CheckNear(batch.of_x[at(row)], of_x);
  }
}

TEST(ResultsAreThoseOfDoubles) {
  std::mt19937_64 random(1);
  for (const int64_t columns : {1, 15, 16, 17, 64, 100, 131}) {
    for (const int64_t rows : {1, 2, 127, 128, 129, 400}) {
      Batch batch(random, rows, columns, 0.5f);
      batch.Run(0, columns);
      for (int64_t column = 0; column < columns; ++column) CheckColumn(batch, column);
    }
  }
}

TEST(AMeanFarFromZeroCostsNoDigits) {
  std::mt19937_64 random(2);
  for (const auto& [rows, offset] : {std::pair{100, 1e4f}, {3000, 1e4f}, {3000, -1e5f}}) {
    Batch batch(random, rows, 19, offset);
    batch.Run(0, 19);
    for (int64_t column = 0; column < 19; ++column) CheckForward(batch, column);
  }
}

TEST(EqualRowsHaveNoVariance) {
  for (const float value : {0.0f, 0.1f, -12345.678f, 3e-39f}) {
    std::mt19937_64 random(6);
    Batch batch(random, 333, 17, 0.0f);
    batch.x.assign(batch.x.size(), value);
    batch.Run(0, 17);
    for (int64_t column = 0; column < 17; ++column) {
      CHECK_EQ(batch.mean[column], value);
      CHECK(batch.variance[column] <= 1e-13 * value * value);
      CheckNear(batch.y[332 * 17 + column], batch.beta[column]);
      CheckNear(batch.of_gamma[column], 0);
    }
  }
}

TEST(WhatIsNoNumberStaysInItsColumn) {
  for (const float value : {NAN, INFINITY, -INFINITY}) {
    std::mt19937_64 random(7);
    Batch batch(random, 300, 40, 0.0f);
    batch.x[200 * 40 + 3] = value;
    batch.Run(0, 40);
    CHECK(!std::isfinite(batch.mean[3]) && std::isnan(batch.mean[3]) == std::isnan(value));
    CHECK(std::isnan(batch.variance[3]) && std::isnan(batch.y[3]) && std::isnan(batch.of_x[3]));
    for (int64_t column = 4; column < 40; ++column) CheckColumn(batch, column);
  }
}

TEST(AnySplitOfTheColumnsGivesTheSameBits) {
  std::mt19937_64 random(3);
  Batch whole(random, 300, 131, 0.5f);
  Batch parts = whole;
  whole.Run(0, 131);
  for (const auto& [begin, end] : {std::pair{80, 131}, {0, 16}, {16, 79}, {79, 80}}) parts.Run(begin, end);
  CHECK(whole.y == parts.y && whole.mean == parts.mean && whole.variance == parts.variance);
  CHECK(whole.of_x == parts.of_x && whole.of_gamma == parts.of_gamma);
  CHECK(whole.of_beta == parts.of_beta);
}

TEST(OtherColumnsStay) {
  std::mt19937_64 random(4);
  Batch batch(random, 5, 40, 0.0f);
  batch.Run(3, 37);
  for (int64_t row = 0; row < 5; ++row) {
    for (const int64_t column : {0, 2, 37, 39}) {
      CHECK_EQ(batch.y[row * 40 + column], -7.0f);
      CHECK_EQ(batch.of_x[row * 40 + column], -7.0f);
    }
  }
  CHECK_EQ(batch.mean[2], -7.0f);
  CHECK_EQ(batch.of_gamma[37], -7.0f);
}

TEST(WithoutRowsThereIsNoMean) {
  std::mt19937_64 random(5);
  Batch batch(random, 0, 20, 0.0f);
  batch.Run(0, 20);
  CHECK(std::isnan(batch.mean[0]) && std::isnan(batch.variance[19]));
  batch.RunOfRelu(0, 20);
  CHECK_EQ(batch.of_beta[0], 0.0f);
  CHECK_EQ(batch.of_bias[19], 0.0f);
}

// As a ReLU gives it: half of it zeros, of both signs.
void Rectify(Batch& batch) {
  for (size_t at = 0; at < batch.x.size(); ++at) {
    if (batch.x[at] < 0) batch.x[at] = at % 2 ? 0.0f : -0.0f;
  }
}

TEST(OfAReluTheGradientOfItsInputIsThatOfXOrZero) {
  std::mt19937_64 random(8);
  for (const int64_t columns : {1, 16, 17, 64, 131}) {
    for (const int64_t rows : {1, 127, 128, 129, 400}) {
      Batch batch(random, rows, columns, 0.0f);
      Rectify(batch);
      batch.Run(0, columns);
      const Batch plain = batch;
      batch.RunOfRelu(0, columns);
      CHECK(batch.of_gamma == plain.of_gamma && batch.of_beta == plain.of_beta);
      for (int64_t column = 0; column < columns; ++column) {
        double sum = 0;
        for (int64_t row = 0; row < rows; ++row) {
          const int64_t at = row * columns + column;
          CHECK_EQ(batch.of_x[at], batch.x[at] > 0 ? plain.of_x[at] : 0.0f);
          sum += batch.of_x[at];
        }
        CheckNear(batch.of_bias[column], sum);
      }
    }
  }
}

TEST(OfAReluWhatIsNoNumberStaysWhereTheUnitIsOff) {
  std::mt19937_64 random(9);
  Batch batch(random, 300, 40, 0.0f);
  Rectify(batch);
  batch.x[200 * 40 + 3] = 0;
  batch.gradient[200 * 40 + 3] = NAN;
  batch.Run(0, 40);
  batch.RunOfRelu(0, 40);
  CHECK(std::isnan(batch.of_x[200 * 40 + 3]) && std::isnan(batch.of_bias[3]));
  CHECK(std::isfinite(batch.of_bias[2]) && std::isfinite(batch.of_bias[4]));
}

TEST(OfAReluAnySplitOfTheColumnsGivesTheSameBits) {
  std::mt19937_64 random(10);
  Batch whole(random, 300, 131, 0.5f);
  whole.Run(0, 131);
  Batch parts = whole;
  whole.RunOfRelu(0, 131);
  for (const auto& [begin, end] : {std::pair{80, 131}, {0, 16}, {16, 79}}) parts.RunOfRelu(begin, end);
  CHECK_EQ(parts.of_bias[79], -7.0f);
  parts.RunOfRelu(79, 80);
  CHECK(whole.of_x == parts.of_x && whole.of_bias == parts.of_bias);
}

}  // namespace
}  // namespace workbench
