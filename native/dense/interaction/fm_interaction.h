#ifndef WORKBENCH_DENSE_INTERACTION_FM_INTERACTION_H_
#define WORKBENCH_DENSE_INTERACTION_FM_INTERACTION_H_

// The second-order interaction of a factorization machine, (Σ x)² − Σ x² over an example's vectors,
// which is twice the sum of the products of all pairs; and its gradient.
//
// Examples are independent of each other and each sum has one order, so that any split of the work
// over threads gives the same bits.

#include <cstdint>

namespace workbench {

// Sets the interactions of examples [begin, end).
//
//   x: [examples, vectors, dim]. made: [examples, dim].
void FmInteraction(const float* x, int64_t vectors, int64_t dim, int64_t begin, int64_t end,
                   float* made);

// Sets the gradient of x from the one of the interactions, for examples [begin, end).
//
//   x, x_gradient: [examples, vectors, dim]. gradient: [examples, dim].
void FmInteractionGradient(const float* x, const float* gradient, int64_t vectors, int64_t dim,
                           int64_t begin, int64_t end, float* x_gradient);

}  // namespace workbench

#endif  // WORKBENCH_DENSE_INTERACTION_FM_INTERACTION_H_
