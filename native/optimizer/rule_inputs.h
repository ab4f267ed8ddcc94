#ifndef WORKBENCH_OPTIMIZER_RULE_INPUTS_H_
#define WORKBENCH_OPTIMIZER_RULE_INPUTS_H_

// What kernels that update rows of variables read: the rule with its numbers, and a table with the
// optimizer's slots, locked while they change.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "optimizer/row_updates.h"
#include "optimizer/update_rules.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/kernels/training_op_helpers.h"

namespace workbench {

// A rule by its name in graphs.
struct RuleKind {
  const char* name;
  int slots;
  bool slots_by_row;  // one number for each row, not for each value
  int scalars;        // of the members of its struct, in their order
};

// The attribute `rule`, and whether as many slots (of `tables`) and scalars are given.
absl::Status RuleOf(tensorflow::OpKernelConstruction* c, int64_t tables, const RuleKind** kind);

// The rule with the numbers of input list `scalars`.
absl::Status ReadRule(tensorflow::OpKernelContext* c, const RuleKind& kind,
                      std::unique_ptr<UpdateRule>* rule);

// A float32 variable and its slots, which stay locked and in place as long as this lives.
class HeldTable {
 public:
  // `slots` begin at an input and are as many as `kind` has.
  absl::Status Hold(tensorflow::OpKernelContext* c, const RuleKind& kind, int table_input,
                    int first_slot_input, bool use_locking);

  const DenseTable& table() const { return table_; }
  int64_t rows() const { return held_[0].dim_size(0); }
  const tensorflow::TensorShape& shape() const { return held_[0].shape(); }

 private:
  std::optional<tensorflow::VariableInputLockHolder> locks_;
  std::vector<tensorflow::Tensor> held_;
  DenseTable table_;
};

// Nanoseconds that changing a row takes.
inline int64_t CostOfUpdate(const DenseTable& table) {
  return (table.slot_count + 1) * (10 + table.dim / 2);
}

}  // namespace workbench

#endif  // WORKBENCH_OPTIMIZER_RULE_INPUTS_H_
