#ifndef WORKBENCH_OPTIMIZER_UPDATE_RULES_H_
#define WORKBENCH_OPTIMIZER_UPDATE_RULES_H_

// How an optimizer changes one row, as TensorFlow's sparse updates do it.

#include <cstdint>

namespace workbench {

template <typename T>
struct TouchedRows;
struct DenseTable;

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  // Changes table row rows[i] by the sum of its gradients, for i in [begin, end) of `count`; false, and
  // nothing is changed, where the rule has no loop of its own for rows of this width.
  virtual bool UpdateTouched(const TouchedRows<float>& in, const DenseTable& table, const int64_t* rows,
                           int64_t count, int64_t begin, int64_t end) const {
    return false;
  }

  // Whether a row's squared gradients are summed for it too.
  virtual bool TakesSquares() const { return false; }

  // row and grad: [dim], with squares grad: [2, dim]; which slots there are, and how long, is the
  // rule's own matter.
  virtual void Update(int64_t dim, const float* grad, float* row, float* const* slots) const = 0;
};

// row -= learning_rate * grad
struct GradientDescentRule : UpdateRule {
  float learning_rate = 0;
  void Update(int64_t dim, const float* grad, float* row, float* const* slots) const override;
  bool UpdateTouched(const TouchedRows<float>& in, const DenseTable& table, const int64_t* rows,
                   int64_t count, int64_t begin, int64_t end) const override;
};

// Slot [dim]: the sum of squared gradients.
struct AdagradRule : UpdateRule {
  float learning_rate = 0;
  float epsilon = 0;  // beneath the root
  void Update(int64_t dim, const float* grad, float* row, float* const* slots) const override;
  bool UpdateTouched(const TouchedRows<float>& in, const DenseTable& table, const int64_t* rows,
                   int64_t count, int64_t begin, int64_t end) const override;
};

// The same where a row takes each of its gradients' squares, not that of their sum, as Keras has it.
struct AdagradOfSquaresRule : UpdateRule {
  float learning_rate = 0;
  float epsilon = 0;  // beneath the root
  bool TakesSquares() const override { return true; }
  void Update(int64_t dim, const float* grad, float* row, float* const* slots) const override;
};

// Slot [1]: the sum of the means of squared gradients (FBGEMM's "exact row-wise Adagrad").
struct RowWiseAdagradRule : UpdateRule {
  float learning_rate = 0;
  float epsilon = 0;  // beside the root
  void Update(int64_t dim, const float* grad, float* row, float* const* slots) const override;
};

// Slots [dim]: first and second moment, which decay only when their row has a gradient.
struct AdamRule : UpdateRule {
  float beta1_power = 0;
  float beta2_power = 0;
  float learning_rate = 0;
  float beta1 = 0;
  float beta2 = 0;
  float epsilon = 0;
  // 1 - beta1 and 1 - beta2, which Keras and TensorFlow round differently.
  float share1 = 0;
  float share2 = 0;
  void Update(int64_t dim, const float* grad, float* row, float* const* slots) const override;
};

// A rule that also changes rows without a gradient.
class AllRowsRule : public UpdateRule {
 public:
  // values and slots: `count` of such rows, which lie one behind the other.
  virtual void UpdateOthers(int64_t count, float* values, float* const* slots) const = 0;
};

// Slots [dim]: first and second moment, which decay at every step, and move their row with them.
struct DecayingAdamRule : AllRowsRule {
  float rate = 0;  // corrected for the moments' beginning at 0
  float beta1 = 0;
  float beta2 = 0;
  float epsilon = 0;
  float share1 = 0;  // as of AdamRule
  float share2 = 0;
  void Update(int64_t dim, const float* grad, float* row, float* const* slots) const override;
  void UpdateOthers(int64_t count, float* values, float* const* slots) const override;
};

// Slots [dim]: first and second moment, moving averages that Keras computes as m += (g - m) · share,
// of rows without a gradient too.
struct KerasAdamRule : AllRowsRule {
  float rate = 0;    // as of DecayingAdamRule
  float share1 = 0;  // 1 - beta1
  float share2 = 0;
  float epsilon = 0;
  bool of_squares = false;  // each gradient of a row is squared, not their sum
  bool TakesSquares() const override { return of_squares; }
  void Update(int64_t dim, const float* grad, float* row, float* const* slots) const override;
  void UpdateOthers(int64_t count, float* values, float* const* slots) const override;
};

// Slots [dim]: the sum of squared gradients, and the linear term.
struct FtrlRule : UpdateRule {
  float learning_rate = 0;
  float l1 = 0;
  float l2 = 0;
  float l2_shrinkage = 0;
  float learning_rate_power = 0;
  void Update(int64_t dim, const float* grad, float* row, float* const* slots) const override;
};

}  // namespace workbench

#endif  // WORKBENCH_OPTIMIZER_UPDATE_RULES_H_
