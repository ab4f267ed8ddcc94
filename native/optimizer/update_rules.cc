#include "optimizer/update_rules.h"

#include <cmath>
#include <cstring>

#include "instructions/clones.h"
#include "optimizer/rule_steps.h"

namespace workbench {
namespace {

template <typename Root>
void UpdateFtrl(const FtrlRule& rule, int64_t dim, const float* __restrict grad,
                float* __restrict row, float* __restrict accum, float* __restrict linear,
                const Root& root) {
  for (int64_t i = 0; i < dim; ++i) {
    FtrlStep(rule, root, grad[i], &row[i], &accum[i], &linear[i]);
  }
}

// Values that are read, and left where they need no change, at a time: a line of the memory.
constexpr int64_t kLine = 16;

// Whether all are 0, of either sign.
WORKBENCH_INLINE bool AllZero(const float* values, int64_t count) {
  uint32_t bits = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t own;
    std::memcpy(&own, values + i, sizeof(own));
    bits |= own;
  }
  return bits << 1 == 0;
}

WORKBENCH_INLINE void DecayLine(const DecayingAdamRule& rule, int64_t count,
                                float* __restrict values, float* __restrict m,
                                float* __restrict v) {
  const bool still = AllZero(m, count);
  if (still && AllZero(v, count)) return;
  for (int64_t i = 0; i < count; ++i) v[i] *= rule.beta2;
  if (still) return;
  for (int64_t i = 0; i < count; ++i) m[i] *= rule.beta1;
  for (int64_t i = 0; i < count; ++i) {
    values[i] -= rule.rate * m[i] / (std::sqrt(v[i]) + rule.epsilon);
  }
}

WORKBENCH_INLINE void AverageLine(const KerasAdamRule& rule, int64_t count,
                                  float* __restrict values, float* __restrict m,
                                  float* __restrict v) {
  const bool still = AllZero(m, count);
  if (still && AllZero(v, count)) return;
  for (int64_t i = 0; i < count; ++i) v[i] = MovingAverage(rule.share2, 0, v[i]);
  if (still) return;
  for (int64_t i = 0; i < count; ++i) m[i] = MovingAverage(rule.share1, 0, m[i]);
  for (int64_t i = 0; i < count; ++i) {
    values[i] -= m[i] * rule.rate / (std::sqrt(v[i]) + rule.epsilon);
  }
}

WORKBENCH_CLONES void Average(const KerasAdamRule& rule, int64_t count, float* values, float* m,
                              float* v) {
  int64_t i = 0;
  for (; i + kLine <= count; i += kLine) AverageLine(rule, kLine, values + i, m + i, v + i);
  if (i < count) AverageLine(rule, count - i, values + i, m + i, v + i);
}

WORKBENCH_CLONES void Decay(const DecayingAdamRule& rule, int64_t count, float* values, float* m,
                            float* v) {
  int64_t i = 0;
  for (; i + kLine <= count; i += kLine) DecayLine(rule, kLine, values + i, m + i, v + i);
  if (i < count) DecayLine(rule, count - i, values + i, m + i, v + i);
}

}  // namespace

void GradientDescentRule::Update(int64_t dim, const float* __restrict grad, float* __restrict row,
                                 float* const*) const {
  for (int64_t i = 0; i < dim; ++i) GradientDescentStep(learning_rate, grad[i], &row[i]);
}

void AdagradRule::Update(int64_t dim, const float* __restrict grad, float* __restrict row,
                         float* const* slots) const {
  float* __restrict accum = slots[0];
  for (int64_t i = 0; i < dim; ++i) {
    AdagradStep(learning_rate, epsilon, grad[i], &row[i], &accum[i]);
  }
}

void AdagradOfSquaresRule::Update(int64_t dim, const float* __restrict grad,
                                  float* __restrict row, float* const* slots) const {
  float* __restrict accum = slots[0];
  const float* __restrict squares = grad + dim;
  for (int64_t i = 0; i < dim; ++i) {
    accum[i] += squares[i];
    row[i] -= learning_rate * grad[i] / std::sqrt(accum[i] + epsilon);
  }
}

void RowWiseAdagradRule::Update(int64_t dim, const float* __restrict grad, float* __restrict row,
                                float* const* slots) const {
  float squares = 0;
  for (int64_t i = 0; i < dim; ++i) squares += grad[i] * grad[i];
  slots[0][0] += squares / static_cast<float>(dim);
  const float rate = RowWiseAdagradRate(learning_rate, epsilon, slots[0][0]);
  for (int64_t i = 0; i < dim; ++i) row[i] -= rate * grad[i];
}

void AdamRule::Update(int64_t dim, const float* __restrict grad, float* __restrict row,
                      float* const* slots) const {
  float* __restrict m = slots[0];
  float* __restrict v = slots[1];
  const float rate = AdamRate(learning_rate, beta1_power, beta2_power);
  for (int64_t i = 0; i < dim; ++i) AdamStep(*this, rate, grad[i], &row[i], &m[i], &v[i]);
}

void DecayingAdamRule::Update(int64_t dim, const float* __restrict grad, float* __restrict row,
                              float* const* slots) const {
  float* __restrict m = slots[0];
  float* __restrict v = slots[1];
  for (int64_t i = 0; i < dim; ++i) AdamStep(*this, rate, grad[i], &row[i], &m[i], &v[i]);
}

void DecayingAdamRule::UpdateOthers(int64_t count, float* values, float* const* slots) const {
  Decay(*this, count, values, slots[0], slots[1]);
}

void KerasAdamRule::Update(int64_t dim, const float* __restrict grad, float* __restrict row,
                           float* const* slots) const {
  float* __restrict m = slots[0];
  float* __restrict v = slots[1];
  for (int64_t i = 0; i < dim; ++i) {
    const float square = of_squares ? grad[dim + i] : grad[i] * grad[i];
    m[i] = MovingAverage(share1, grad[i], m[i]);
    v[i] = MovingAverage(share2, square, v[i]);
    row[i] -= m[i] * rate / (std::sqrt(v[i]) + epsilon);
  }
}

void KerasAdamRule::UpdateOthers(int64_t count, float* values, float* const* slots) const {
  Average(*this, count, values, slots[0], slots[1]);
}

void FtrlRule::Update(int64_t dim, const float* grad, float* row, float* const* slots) const {
  if (learning_rate_power == -0.5f) {
    UpdateFtrl(*this, dim, grad, row, slots[0], slots[1], [](float x) { return std::sqrt(x); });
  } else {
    UpdateFtrl(*this, dim, grad, row, slots[0], slots[1],
               [power = -learning_rate_power](float x) { return std::pow(x, power); });
  }
}

}  // namespace workbench
