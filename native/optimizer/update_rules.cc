#include "optimizer/update_rules.h"

#include <cmath>

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

void FtrlRule::Update(int64_t dim, const float* grad, float* row, float* const* slots) const {
  if (learning_rate_power == -0.5f) {
    UpdateFtrl(*this, dim, grad, row, slots[0], slots[1], [](float x) { return std::sqrt(x); });
  } else {
    UpdateFtrl(*this, dim, grad, row, slots[0], slots[1],
               [power = -learning_rate_power](float x) { return std::pow(x, power); });
  }
}

}  // namespace workbench
