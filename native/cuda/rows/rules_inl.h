#ifndef WORKBENCH_CUDA_ROWS_RULES_INL_H_
#define WORKBENCH_CUDA_ROWS_RULES_INL_H_

// The rules of update_rules.h as a kernel calls them, for one value at a time. A rule by row has one
// slot of one number for the whole row, and a rate that is worked out before the values change.

#include <cmath>

#include "cuda/calls.h"
#include "cuda/device/portable.h"
#include "optimizer/rule_steps.h"

namespace workbench::cuda {

struct GradientDescent {
  static constexpr int kSlots = 0;
  static constexpr bool kByRow = false;
  float learning_rate;

  explicit GradientDescent(const float* numbers) : learning_rate(numbers[0]) {}
  WORKBENCH_DEVICE void Step(float grad, float* value, float* const*) const {
    GradientDescentStep(learning_rate, grad, value);
  }
};

struct Adagrad {
  static constexpr int kSlots = 1;
  static constexpr bool kByRow = false;
  float learning_rate, epsilon;

  explicit Adagrad(const float* numbers) : learning_rate(numbers[0]), epsilon(numbers[1]) {}
  WORKBENCH_DEVICE void Step(float grad, float* value, float* const* slots) const {
    AdagradStep(learning_rate, epsilon, grad, value, slots[0]);
  }
};

struct RowWiseAdagrad {
  static constexpr int kSlots = 1;
  static constexpr bool kByRow = true;
  float learning_rate, epsilon;

  explicit RowWiseAdagrad(const float* numbers) : learning_rate(numbers[0]), epsilon(numbers[1]) {}
  WORKBENCH_DEVICE float Rate(float accum) const {
    return RowWiseAdagradRate(learning_rate, epsilon, accum);
  }
};

struct Adam {
  static constexpr int kSlots = 2;
  static constexpr bool kByRow = false;
  float rate, beta1, beta2, epsilon, share1, share2;

  explicit Adam(const float* numbers)
      : rate(AdamRate(numbers[2], numbers[0], numbers[1])),
        beta1(numbers[3]),
        beta2(numbers[4]),
        epsilon(numbers[5]),
        share1(numbers[6]),
        share2(numbers[7]) {}
  WORKBENCH_DEVICE void Step(float grad, float* value, float* const* slots) const {
    AdamStep(*this, rate, grad, value, slots[0], slots[1]);
  }
};

struct Ftrl {
  static constexpr int kSlots = 2;
  static constexpr bool kByRow = false;
  float learning_rate, l1, l2, l2_shrinkage, learning_rate_power;

  explicit Ftrl(const float* numbers)
      : learning_rate(numbers[0]),
        l1(numbers[1]),
        l2(numbers[2]),
        l2_shrinkage(numbers[3]),
        learning_rate_power(numbers[4]) {}
  WORKBENCH_DEVICE void Step(float grad, float* value, float* const* slots) const {
    const float power = -learning_rate_power;
    const auto root = [power](float x) { return power == 0.5f ? std::sqrt(x) : std::pow(x, power); };
    FtrlStep(*this, root, grad, value, slots[0], slots[1]);
  }
};

// Calls `function` with the rule of a call.
template <typename Function>
void WithRule(const RuleCall& call, const Function& function) {
  switch (call.rule) {
    case Rule::kGradientDescent: return function(GradientDescent(call.numbers));
    case Rule::kAdagrad: return function(Adagrad(call.numbers));
    case Rule::kRowWiseAdagrad: return function(RowWiseAdagrad(call.numbers));
    case Rule::kAdam: return function(Adam(call.numbers));
    case Rule::kFtrl: return function(Ftrl(call.numbers));
  }
}

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_ROWS_RULES_INL_H_
