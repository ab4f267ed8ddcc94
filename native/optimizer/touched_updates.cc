// The loops of the usual rules for the usual widths. Products are rounded before they are added.

#include "optimizer/touched_updates_inl.h"
#include "optimizer/rule_steps.h"
#include "optimizer/update_rules.h"

namespace workbench {
namespace {

// A function each: in one of them all, what its loops need does not stay in registers.
#define WORKBENCH_UPDATE_WIDTH(dim)                                                               \
  WORKBENCH_CLONES void UpdateRange(Width<dim>, const GradientDescentRule& rule,                  \
                                    const TouchedRows<float>& in, const DenseTable& table,          \
                                    const int64_t* rows, int64_t count, int64_t begin,            \
                                    int64_t end) {                                                \
    const float learning_rate = rule.learning_rate;                                               \
    UpdateTouchedOfWidth<Vector, dim, 0>(                                                           \
        in, table, rows, count, begin, end,                                                       \
        [&](const float* grad, float* row, float*) WORKBENCH_INLINED {                            \
          for (int c = 0; c < dim; ++c) GradientDescentStep(learning_rate, grad[c], &row[c]);     \
        });                                                                                       \
  }                                                                                               \
  WORKBENCH_CLONES void UpdateRange(Width<dim>, const AdagradRule& rule,                          \
                                    const TouchedRows<float>& in, const DenseTable& table,          \
                                    const int64_t* rows, int64_t count, int64_t begin,            \
                                    int64_t end) {                                                \
    const float learning_rate = rule.learning_rate, epsilon = rule.epsilon;                       \
    UpdateTouchedOfWidth<Vector, dim, 1>(                                                           \
        in, table, rows, count, begin, end,                                                       \
        [&](const float* __restrict grad, float* __restrict row, float* __restrict accum)         \
            WORKBENCH_INLINED {                                                                   \
              for (int c = 0; c < dim; ++c) {                                                     \
                AdagradStep(learning_rate, epsilon, grad[c], &row[c], &accum[c]);                 \
              }                                                                                   \
            });                                                                                   \
  }
WORKBENCH_UPDATE_WIDTH(8)
WORKBENCH_UPDATE_WIDTH(16)
WORKBENCH_UPDATE_WIDTH(32)
WORKBENCH_UPDATE_WIDTH(64)
#undef WORKBENCH_UPDATE_WIDTH

}  // namespace

bool GradientDescentRule::UpdateTouched(const TouchedRows<float>& in, const DenseTable& table,
                                      const int64_t* rows, int64_t count, int64_t begin,
                                      int64_t end) const {
  return AtUsualWidth(table.dim, [&](auto width) {
    UpdateRange(width, *this, in, table, rows, count, begin, end);
  });
}

bool AdagradRule::UpdateTouched(const TouchedRows<float>& in, const DenseTable& table,
                              const int64_t* rows, int64_t count, int64_t begin,
                              int64_t end) const {
  return AtUsualWidth(table.dim, [&](auto width) {
    UpdateRange(width, *this, in, table, rows, count, begin, end);
  });
}

}  // namespace workbench
