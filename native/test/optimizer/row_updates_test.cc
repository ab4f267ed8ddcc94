#include "optimizer/row_updates.h"

#include <cmath>
#include <initializer_list>
#include <random>
#include <vector>

#include "combine/combine.h"
#include "test/support/check.h"

namespace workbench {
namespace {

// A table with what an optimizer keeps of each value, beside it.
DenseTable TableOf(int64_t dim, std::vector<float>& values, std::initializer_list<float*> slots) {
  DenseTable table;
  table.values = values.data();
  table.dim = dim;
  for (float* slot : slots) {
    table.slots[table.slot_count] = slot;
    table.slot_dims[table.slot_count++] = dim;
  }
  return table;
}

TEST(RowsOfABatchChangeAndNoOthers) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 200; ++round) {
    const int64_t dim = 1 + random() % 40, count = 1 + random() % 50;
    std::vector<float> values(count * dim), sums(count * dim, 0.1f);
    for (float& value : values) value = normal(random);
    std::vector<float> expected = values, expected_sums = sums;
    std::vector<int64_t> rows;
    for (int64_t row = 0; row < count; ++row) {
      if (random() % 3 == 0) rows.push_back(row);
    }
    std::vector<float> grads(rows.size() * dim);
    for (float& grad : grads) grad = normal(random);
    AdagradRule rule;
    rule.learning_rate = 0.5f;
    const DenseTable table = TableOf(dim, values, {sums.data()});
    const int64_t all = rows.size(), half = all / 2;
    CHECK(Ascending(rows.data(), all));
    UpdateRows(rule, table, rows.data(), grads.data(), half, all);
    UpdateRows(rule, table, rows.data(), grads.data(), 0, half);
    for (int64_t i = 0; i < all; ++i) {
      for (int64_t c = 0; c < dim; ++c) {
        const float grad = grads[i * dim + c];
        expected_sums[rows[i] * dim + c] += grad * grad;
        expected[rows[i] * dim + c] -= 0.5f * grad / std::sqrt(expected_sums[rows[i] * dim + c]);
      }
    }
    for (size_t i = 0; i < values.size(); ++i) {
      CHECK(std::abs(values[i] - expected[i]) <= 1e-6f * (1 + std::abs(expected[i])));
      CHECK(std::abs(sums[i] - expected_sums[i]) <= 1e-6f * expected_sums[i]);
    }
  }
}

// Of each width in two ranges: those with a loop of their own, and one without.
template <typename Rule>
void CheckTouchedRows(const Rule& rule, bool slot) {
  std::mt19937_64 random(4);
  std::normal_distribution<float> normal;
  for (const int64_t dim : {8, 16, 32, 64, 24}) {
    for (int round = 0; round < 20; ++round) {
      const int64_t examples = 1 + random() % 40, count = 1 + random() % 300;
      std::vector<float> gradients(examples * dim), factors(examples);
      std::vector<const float*> begins;
      for (float& each : gradients) each = normal(random);
      for (float& each : factors) each = normal(random);
      for (int64_t e = 0; e < examples; ++e) begins.push_back(gradients.data() + e * dim);
      std::vector<int64_t> rows;
      std::vector<int32_t> firsts = {0}, who;
      for (int64_t row = 0; row < count; ++row) {
        if (random() % 2 == 0) continue;
        rows.push_back(row);
        // Most once, some often.
        const uint64_t times = random() % 8 == 0 ? 30 : 1 + random() % 2;
        for (uint64_t i = 0; i < times; ++i) who.push_back(random() % examples);
        firsts.push_back(static_cast<int32_t>(who.size()));
      }
      const int64_t touched = static_cast<int64_t>(rows.size()), half = touched / 2;
      const TouchedRows<float> in = {dim, firsts.data(), who.data(), begins.data(), factors.data()};
      std::vector<float> values(count * dim), sums(count * dim, 0.1f), grads(touched * dim);
      for (float& value : values) value = normal(random);
      std::vector<float> expected = values, expected_sums = sums;
      const DenseTable table =
          slot ? TableOf(dim, values, {sums.data()}) : TableOf(dim, values, {});
      const DenseTable other = slot ? TableOf(dim, expected, {expected_sums.data()})
                                    : TableOf(dim, expected, {});
      const bool found = rule.UpdateTouched(in, table, rows.data(), touched, half, touched);
      CHECK_EQ(found, dim != 24);
      if (!found) continue;
      CHECK(rule.UpdateTouched(in, table, rows.data(), touched, 0, half));
      SumGradients(in, 0, touched, grads.data());
      UpdateRows(rule, other, rows.data(), grads.data(), 0, touched);
      for (size_t i = 0; i < values.size(); ++i) {
        CHECK(std::abs(values[i] - expected[i]) <= 1e-5f * (1 + std::abs(expected[i])));
        CHECK(std::abs(sums[i] - expected_sums[i]) <= 1e-5f * expected_sums[i]);
      }
    }
  }
}

TEST(RowsThatAreSummedAndChangedAtOnceAreThoseOfTwoSteps) {
  GradientDescentRule descent;
  descent.learning_rate = 0.5f;
  CheckTouchedRows(descent, false);
  AdagradRule adagrad;
  adagrad.learning_rate = 0.5f;
  adagrad.epsilon = 1e-3f;
  CheckTouchedRows(adagrad, true);
}

TEST(AdamDecaysRowsWithoutAGradient) {
  std::mt19937_64 random(2);
  std::normal_distribution<float> normal;
  DecayingAdamRule rule;
  rule.rate = 0.1f, rule.beta1 = 0.9f, rule.beta2 = 0.99f, rule.epsilon = 1e-4f;
  rule.share1 = 0.1f, rule.share2 = 0.01f;
  for (int round = 0; round < 200; ++round) {
    const int64_t dim = 1 + random() % 40, count = 3 + random() % 50;
    std::vector<float> values(count * dim), m(count * dim), v(count * dim);
    for (int64_t row = 0; row < count; ++row) {
      // Rows that never had a gradient, some of which had one long ago, and others.
      const uint64_t kind = random() % 3;
      for (int64_t i = row * dim; i < (row + 1) * dim; ++i) {
        values[i] = normal(random);
        m[i] = kind == 2 ? normal(random) : -0.0f;
        v[i] = kind == 0 ? 0.0f : std::abs(normal(random));
      }
    }
    const std::vector<float> before = values, m_before = m, v_before = v;
    const DenseTable table = TableOf(dim, values, {m.data(), v.data()});
    UpdateOthers(rule, table, 1, count - 1);
    UpdateOthers(rule, table, 1, 1);
    for (int64_t i = 0; i < count * dim; ++i) {
      const bool others = i >= dim && i < (count - 1) * dim;
      const float moment = others ? 0.9f * m_before[i] : m_before[i];
      const float square = others ? 0.99f * v_before[i] : v_before[i];
      const float value = others ? before[i] - 0.1f * moment / (std::sqrt(square) + 1e-4f) : before[i];
      CHECK(m[i] == moment);
      CHECK(v[i] == square);
      CHECK(std::abs(values[i] - value) <= 1e-5f * (1 + std::abs(value - before[i])));
    }
  }
}

// Keras's own order of operations, value by value.
TEST(KerasAdamMovesRowsWithAndWithoutAGradient) {
  std::mt19937_64 random(3);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 200; ++round) {
    KerasAdamRule rule;
    rule.rate = 0.1f, rule.share1 = 0.1f, rule.share2 = 0.01f, rule.epsilon = 1e-4f;
    rule.of_squares = round % 2 == 1;
    const int64_t dim = 1 + random() % 40, count = 3;
    std::vector<float> values(count * dim), m(count * dim), v(count * dim);
    for (int64_t i = 0; i < count * dim; ++i) {
      values[i] = normal(random), m[i] = normal(random), v[i] = std::abs(normal(random));
    }
    std::vector<float> given(2 * dim);
    for (float& each : given) each = std::abs(normal(random));
    const std::vector<float> before = values, m_before = m, v_before = v;
    const DenseTable table = TableOf(dim, values, {m.data(), v.data()});
    const int64_t row = 1;
    UpdateRows(rule, table, &row, given.data(), 0, 1);
    UpdateOthers(rule, table, 0, 1);
    UpdateOthers(rule, table, 2, 3);
    for (int64_t i = 0; i < count * dim; ++i) {
      const bool own = i / dim == row;
      const float grad = own ? given[i % dim] : 0.0f;
      const float square = own && rule.of_squares ? given[dim + i % dim] : grad * grad;
      const float moment = m_before[i] + (grad - m_before[i]) * 0.1f;
      const float second = v_before[i] + (square - v_before[i]) * 0.01f;
      const float value = before[i] - moment * 0.1f / (std::sqrt(second) + 1e-4f);
      CHECK(std::abs(m[i] - moment) <= 1e-6f * (1 + std::abs(moment)));
      CHECK(std::abs(v[i] - second) <= 1e-6f * (1 + second));
      CHECK(std::abs(values[i] - value) <= 1e-5f * (1 + std::abs(value - before[i])));
    }
  }
}

TEST(AdagradOfSquaresTakesBothSums) {
  AdagradOfSquaresRule rule;
  rule.learning_rate = 0.5f, rule.epsilon = 0.25f;
  std::vector<float> value = {1}, squares = {1};
  // Gradients 3 and -1: their sum, then the sum of their squares.
  const float given[] = {2, 10};
  const int64_t row = 0;
  UpdateRows(rule, TableOf(1, value, {squares.data()}), &row, given, 0, 1);
  CHECK(squares[0] == 11);
  CHECK(std::abs(value[0] - (1 - 1 / std::sqrt(11.25f))) < 1e-6f);
}

TEST(RowsThatComeTwiceAreNotAscending) {
  const int64_t twice[] = {1, 1}, falling[] = {2, 1}, good[] = {0, 5, 6};
  CHECK(!Ascending(twice, 2));
  CHECK(!Ascending(falling, 2));
  CHECK(Ascending(good, 3));
  CHECK(Ascending(good, 0));
}

}  // namespace
}  // namespace workbench
