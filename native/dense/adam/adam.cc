#include "dense/adam/adam.h"

#include <cmath>

#include "instructions/clones.h"
#include "optimizer/rule_steps.h"

namespace workbench {
namespace {

template <bool kNesterov>
WORKBENCH_INLINE void Steps(const DenseAdam& adam, int64_t count, const float* __restrict grad,
                            float* __restrict value, float* __restrict m, float* __restrict v) {
  const DenseAdam a = adam;
  for (int64_t i = 0; i < count; ++i) {
    m[i] = MovingAverage(a.share1, grad[i], m[i]);
    v[i] = MovingAverage(a.share2, grad[i] * grad[i], v[i]);
    const float moved = kNesterov ? grad[i] * a.share1 + a.beta1 * m[i] : m[i];
    value[i] -= moved * a.rate / (std::sqrt(v[i]) + a.epsilon);
  }
}

}  // namespace

WORKBENCH_CLONES void AdamSteps(const DenseAdam& adam, int64_t count, const float* grad,
                                float* value, float* m, float* v) {
  if (adam.nesterov) {
    Steps<true>(adam, count, grad, value, m, v);
  } else {
    Steps<false>(adam, count, grad, value, m, v);
  }
}

}  // namespace workbench
