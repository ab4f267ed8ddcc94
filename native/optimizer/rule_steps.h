#ifndef WORKBENCH_OPTIMIZER_RULE_STEPS_H_
#define WORKBENCH_OPTIMIZER_RULE_STEPS_H_

// How an optimizer changes one value of a row, on a CPU and on a GPU. update_rules.h says what the
// numbers are.

#include <cmath>

#ifdef __CUDACC__
#define WORKBENCH_HOST_DEVICE __host__ __device__
#else
#define WORKBENCH_HOST_DEVICE
#endif

namespace workbench {

WORKBENCH_HOST_DEVICE inline void GradientDescentStep(float learning_rate, float grad,
                                                      float* value) {
  *value -= grad * learning_rate;
}

WORKBENCH_HOST_DEVICE inline void AdagradStep(float learning_rate, float epsilon, float grad,
                                              float* value, float* accum) {
  *accum += grad * grad;
  *value -= learning_rate * grad / std::sqrt(*accum + epsilon);
}

// What a row's values are multiplied with, by its accumulator.
WORKBENCH_HOST_DEVICE inline float RowWiseAdagradRate(float learning_rate, float epsilon,
                                                      float accum) {
  return learning_rate / (std::sqrt(accum) + epsilon);
}

WORKBENCH_HOST_DEVICE inline float AdamRate(float learning_rate, float beta1_power,
                                            float beta2_power) {
  return learning_rate * std::sqrt(1 - beta2_power) / (1 - beta1_power);
}

// rate: AdamRate.
template <typename Adam>
WORKBENCH_HOST_DEVICE inline void AdamStep(const Adam& rule, float rate, float grad, float* value,
                                           float* m, float* v) {
  *m = rule.beta1 * *m + rule.share1 * grad;
  *v = rule.beta2 * *v + rule.share2 * (grad * grad);
  *value -= rate * *m / (std::sqrt(*v) + rule.epsilon);
}

// What a moment is after it took a gradient, or its square, in: the order of Keras's operations.
WORKBENCH_HOST_DEVICE inline float MovingAverage(float share, float taken, float average) {
  return average + (taken - average) * share;
}

// root: of a sum of squared gradients.
template <typename Ftrl, typename Root>
WORKBENCH_HOST_DEVICE inline void FtrlStep(const Ftrl& rule, const Root& root, float grad,
                                           float* value, float* accum, float* linear) {
  const float grown = *accum + grad * grad;
  const float grown_root = root(grown);
  const float shrunk = grad + 2 * rule.l2_shrinkage * *value;
  const float moved = *linear + (shrunk - (grown_root - root(*accum)) / rule.learning_rate * *value);
  // The linear term outside [-l1, l1] pulls the value away from 0.
  const float held = moved > rule.l1 ? rule.l1 : moved < -rule.l1 ? -rule.l1 : moved;
  *linear = moved;
  *value = (held - moved) / (grown_root / rule.learning_rate + 2 * rule.l2);
  *accum = grown;
}

}  // namespace workbench

#endif  // WORKBENCH_OPTIMIZER_RULE_STEPS_H_
