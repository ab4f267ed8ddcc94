#ifndef WORKBENCH_INSTRUCTIONS_VECTORS_H_
#define WORKBENCH_INSTRUCTIONS_VECTORS_H_

namespace workbench {

// Floats that are computed with together; they may lie anywhere among others.
constexpr int kLanes = 8;
using Vector = float __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));
// Of those that every processor has; of longer ones GCC makes single floats there.
using ShortVector = float __attribute__((vector_size(4 * sizeof(float)), aligned(4), may_alias));

}  // namespace workbench

#endif  // WORKBENCH_INSTRUCTIONS_VECTORS_H_
