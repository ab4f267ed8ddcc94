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
  bool all_rows;      // an AllRowsRule
  std::unique_ptr<UpdateRule> (*make)(const std::vector<float>& numbers);  // as many as scalars
};

// The attribute `rule`, and whether as many slots (of `tables`) and scalars are given.
absl::Status RuleOf(tensorflow::OpKernelConstruction* c, int64_t tables, const RuleKind** kind);

// The numbers of input list `scalars`.
absl::Status ReadScalars(tensorflow::OpKernelContext* c, std::vector<float>* numbers);

// The rule with these numbers.
absl::Status ReadRule(tensorflow::OpKernelContext* c, const RuleKind& kind,
                      std::unique_ptr<UpdateRule>* rule);

// Whether these inputs are variables of float32, before TensorFlow's helpers take them for such; the
// first ones are `tables`, the others slots.
absl::Status RequireFloats(tensorflow::OpKernelContext* c, const std::vector<int>& inputs,
                           int tables);

// A float32 variable and its slots.
class HeldTable {
 public:
  // Of variables that are locked; `inputs`: the table and its slots.
  absl::Status Read(tensorflow::OpKernelContext* c, const RuleKind& kind,
                    const std::vector<int>& inputs, bool use_locking);

  const DenseTable& table() const { return table_; }
  int64_t rows() const { return held_[0].dim_size(0); }
  const tensorflow::TensorShape& shape() const { return held_[0].shape(); }

 private:
  std::vector<tensorflow::Tensor> held_;
  DenseTable table_;
};

// Tables and their slots, which stay locked and in place as long as this lives. All locks are taken
// on the op's own thread, in the order of their addresses: what waits for one on a pool's thread
// would keep the lookup that holds it from the threads that it needs to end.
class HeldTables {
 public:
  // The first inputs are the tables, those behind them the slots of one after the other.
  absl::Status Hold(tensorflow::OpKernelContext* c, const RuleKind& kind, int tables,
                    bool use_locking);

  const HeldTable& operator[](int table) const { return tables_[table]; }

 private:
  std::optional<tensorflow::VariableInputLockHolder> locks_;
  std::vector<HeldTable> tables_;
};

// Nanoseconds that changing a row takes.
inline int64_t CostOfUpdate(const DenseTable& table) {
  return (table.slot_count + 1) * (10 + table.dim / 2);
}

}  // namespace workbench

#endif  // WORKBENCH_OPTIMIZER_RULE_INPUTS_H_
