#ifndef WORKBENCH_INSTRUCTIONS_VECTORS_H_
#define WORKBENCH_INSTRUCTIONS_VECTORS_H_

namespace workbench {

// Floats that are computed with together; they may lie anywhere among others. Of those that are
// longer than what a processor has, GCC makes parts.
template <int kCount>
struct VectorOf;

#define WORKBENCH_VECTOR_OF(count)                                                          \
  template <>                                                                               \
  struct VectorOf<count> {                                                                  \
    using Type =                                                                            \
        float __attribute__((vector_size(count * sizeof(float)), aligned(4), may_alias));   \
  };
WORKBENCH_VECTOR_OF(4)
WORKBENCH_VECTOR_OF(8)
WORKBENCH_VECTOR_OF(16)
#undef WORKBENCH_VECTOR_OF

// What most loops are written with.
constexpr int kLanes = 8;
using Vector = VectorOf<kLanes>::Type;
// Of those that every processor has; of longer ones GCC makes single floats there.
using ShortVector = VectorOf<4>::Type;

}  // namespace workbench

#endif  // WORKBENCH_INSTRUCTIONS_VECTORS_H_
