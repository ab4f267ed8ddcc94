#ifndef WORKBENCH_DENSE_ADAM_ADAM_H_
#define WORKBENCH_DENSE_ADAM_ADAM_H_

// Adam's step of a whole variable, as TensorFlow's ApplyAdam does it, to the bit.

#include <cstdint>

namespace workbench {

struct DenseAdam {
  float rate;  // AdamRate
  float beta1;
  float share1, share2;  // 1 - beta1, 1 - beta2
  float epsilon;
  bool nesterov = false;
};

// Changes `count` values and their moments by their gradients.
void AdamSteps(const DenseAdam& adam, int64_t count, const float* grad, float* value, float* m,
               float* v);

}  // namespace workbench

#endif  // WORKBENCH_DENSE_ADAM_ADAM_H_
