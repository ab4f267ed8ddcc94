#include "optimizer/update_rules.h"

#include <cmath>

namespace workbench {
namespace {

// The linear term outside [-l1, l1] pulls the row away from 0.
float Proximal(float linear, float quadratic, float l1) {
  const float excess = (linear > l1 ? l1 : linear < -l1 ? -l1 : linear) - linear;
  return excess / quadratic;
}

template <typename Root>
void UpdateFtrl(const FtrlRule& rule, int64_t dim, const float* __restrict grad,
                float* __restrict row, float* __restrict accum, float* __restrict linear,
                const Root& root) {
  for (int64_t i = 0; i < dim; ++i) {
    const float grown = accum[i] + grad[i] * grad[i];
    const float grown_root = root(grown);
    const float shrunk = grad[i] + 2 * rule.l2_shrinkage * row[i];
    linear[i] += shrunk - (grown_root - root(accum[i])) / rule.learning_rate * row[i];
    row[i] = Proximal(linear[i], grown_root / rule.learning_rate + 2 * rule.l2, rule.l1);
    accum[i] = grown;
  }
}

}  // namespace

void GradientDescentRule::Update(int64_t dim, const float* __restrict grad, float* __restrict row,
                                 float* const*) const {
  for (int64_t i = 0; i < dim; ++i) row[i] -= grad[i] * learning_rate;
}

void AdagradRule::Update(int64_t dim, const float* __restrict grad, float* __restrict row,
                         float* const* slots) const {
  float* __restrict accum = slots[0];
  for (int64_t i = 0; i < dim; ++i) {
    accum[i] += grad[i] * grad[i];
    row[i] -= learning_rate * grad[i] / std::sqrt(accum[i] + epsilon);
  }
}

void RowWiseAdagradRule::Update(int64_t dim, const float* __restrict grad, float* __restrict row,
                                float* const* slots) const {
  float squares = 0;
  for (int64_t i = 0; i < dim; ++i) squares += grad[i] * grad[i];
  slots[0][0] += squares / static_cast<float>(dim);
  const float rate = learning_rate / (std::sqrt(slots[0][0]) + epsilon);
  for (int64_t i = 0; i < dim; ++i) row[i] -= rate * grad[i];
}

void AdamRule::Update(int64_t dim, const float* __restrict grad, float* __restrict row,
                      float* const* slots) const {
  float* __restrict m = slots[0];
  float* __restrict v = slots[1];
  const float rate = learning_rate * std::sqrt(1 - beta2_power) / (1 - beta1_power);
  for (int64_t i = 0; i < dim; ++i) {
    m[i] = beta1 * m[i] + share1 * grad[i];
    v[i] = beta2 * v[i] + share2 * (grad[i] * grad[i]);
    row[i] -= rate * m[i] / (std::sqrt(v[i]) + epsilon);
  }
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
