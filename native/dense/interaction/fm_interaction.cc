#include "dense/interaction/fm_interaction.h"

#include "instructions/clones.h"
#include "instructions/vectors.h"

namespace workbench {
namespace {

// Calls `function(column, zeros)` for blocks of columns: of kLanes as a Vector, of one as a float.
template <typename Function>
WORKBENCH_INLINE void EachBlock(int64_t dim, const Function& function) {
  int64_t d = 0;
  for (; d + kLanes <= dim; d += kLanes) function(d, Vector{});
  for (; d < dim; ++d) function(d, 0.0f);
}

// Floats as a block like this one.
template <typename Block>
WORKBENCH_INLINE const Block& As(const Block&, const float* from) {
  return *reinterpret_cast<const Block*>(from);
}

template <typename Block>
WORKBENCH_INLINE void Store(const Block& block, float* to) {
  *reinterpret_cast<Block*>(to) = block;
}

}  // namespace

WORKBENCH_CLONES void FmInteraction(const float* x, int64_t vectors, int64_t dim, int64_t begin,
                                    int64_t end, float* made) {
  for (int64_t example = begin; example < end; ++example) {
    const float* from = x + example * vectors * dim;
    float* to = made + example * dim;
    EachBlock(dim, [&](int64_t d, auto zeros) WORKBENCH_INLINED {
      auto sum = zeros, squares = zeros;
      for (int64_t i = 0; i < vectors; ++i) {
        const auto& each = As(zeros, from + i * dim + d);
        sum += each;
        squares += each * each;
      }
      Store(sum * sum - squares, to + d);
    });
  }
}

WORKBENCH_CLONES void FmInteractionGradient(const float* x, const float* gradient, int64_t vectors,
                                            int64_t dim, int64_t begin, int64_t end,
                                            float* x_gradient) {
  for (int64_t example = begin; example < end; ++example) {
    const float *from = x + example * vectors * dim, *given = gradient + example * dim;
    float* to = x_gradient + example * vectors * dim;
    EachBlock(dim, [&](int64_t d, auto zeros) WORKBENCH_INLINED {
      auto sum = zeros;
      for (int64_t i = 0; i < vectors; ++i) sum += As(zeros, from + i * dim + d);
      const auto twice = 2.0f * As(zeros, given + d);
      for (int64_t i = 0; i < vectors; ++i) {
        const int64_t at = i * dim + d;
        Store(twice * (sum - As(zeros, from + at)), to + at);
      }
    });
  }
}

}  // namespace workbench
