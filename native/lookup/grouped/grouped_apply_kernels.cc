// The kernel of the gradient of grouped lookups with an optimizer's update in it, see
// grouped_ops.cc.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "combine/combine.h"
#include "lookup/grouped/touched_tables.h"
#include "lookup/grouped/grouped_inputs.h"
#include "lookup/grouped/tables_in_huge_pages.h"
#include "optimizer/row_updates.h"
#include "optimizer/rule_inputs.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace workbench::grouped {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;

// Values of a table that change with their slots while a core's own cache has them.
constexpr int64_t kRangeValues = 16 << 10;

template <typename Id>
class ApplyOp : public OpKernel {
 public:
  explicit ApplyOp(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, attributes_.Read(c));
    OP_REQUIRES_OK(c, RuleOf(c, Tables(), &kind_));
    OP_REQUIRES_OK(c, c->GetAttr("use_locking", &use_locking_));
    OP_REQUIRES_OK(c, ReadColumns(c, attributes_, &columns_));
  }

  void Compute(OpKernelContext* c) override {
    std::unique_ptr<UpdateRule> rule;
    OP_REQUIRES_OK(c, ReadRule(c, *kind_, &rule));
    std::vector<TouchedTable<float>> touched;
    OP_REQUIRES_OK(c, (ReadTouched<float, Id>(c, attributes_, &columns_, &touched)));
    HeldTables held;
    OP_REQUIRES_OK(c, held.Hold(c, *kind_, Tables(), use_locking_));
    for (int t = 0; t < Tables(); ++t) {
      OP_REQUIRES_OK(c, Check(touched[t], held[t]));
      MoveSlots(held[t].table(), held[t].rows());
    }
    if (kind_->all_rows) {
      ApplyToAll(c, touched, static_cast<const AllRowsRule&>(*rule), held);
      return;
    }
    const int64_t row_ns = (kind_->slots + 1) * kFarRow;
    ByRowsOfTables(c, touched, row_ns, [&](size_t t, int64_t begin, int64_t end) {
      Apply(touched[t], *rule, held[static_cast<int>(t)].table(), begin, end);
    });
  }

 private:
  int Tables() const { return static_cast<int>(attributes_.dims().size()); }

  static absl::Status Check(const TouchedTable<float>& touched, const HeldTable& held) {
    if (held.shape().dims() != 2 || held.shape().dim_size(1) != touched.dim) {
      return absl::InvalidArgumentError(absl::StrCat("a table has shape ",
                                                     held.shape().DebugString(),
                                                     "; expected [rows, ", touched.dim, "]"));
    }
    const int64_t count = touched.rows.unique;
    if (count > 0 && touched.rows.rows[count - 1] >= held.rows()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "row ", touched.rows.rows[count - 1], " is not in a table of ", held.rows(), " rows"));
    }
    return absl::OkStatus();
  }

  // Into huge pages, as the lookup moves the table itself.
  static void MoveSlots(const DenseTable& table, int64_t rows) {
    for (int s = 0; s < table.slot_count; ++s) {
      MoveIntoHugePages(table.slots[s], rows * table.slot_dims[s] * sizeof(float));
    }
  }

  // Changes the rows [begin, end) of those that were asked for.
  static void Apply(const TouchedTable<float>& touched, const UpdateRule& rule,
                    const DenseTable& table, int64_t begin, int64_t end) {
    const int64_t at_once = SummedAtOnce(table.dim);
    const TouchedRows<float> in = touched.ToSum();
    const int64_t* rows = touched.rows.rows.get();
    if (rule.UpdateTouched(in, table, rows, touched.rows.unique, begin, end)) return;
    const bool squares = rule.TakesSquares();
    const std::unique_ptr<float[]> sums = Unset<float>(at_once * table.dim * (squares ? 2 : 1));
    for (int64_t first = begin; first < end; first += at_once) {
      const int64_t count = std::min(at_once, end - first);
      FetchRows(table, rows + first, count);
      if (squares) {
        SumGradientsAndSquares(in, first, first + count, sums.get());
      } else {
        SumGradients(in, first, first + count, sums.get());
      }
      UpdateRows(rule, table, rows + first, sums.get(), 0, count);
    }
  }

  // Changes all rows of the tables, those that were not asked for too.
  void ApplyToAll(OpKernelContext* c, const std::vector<TouchedTable<float>>& touched,
                  const AllRowsRule& rule, const HeldTables& held) const {
    std::vector<int64_t> rows, step;
    int64_t values = 0;
    for (int t = 0; t < Tables(); ++t) {
      rows.push_back(held[t].rows());
      step.push_back(std::max<int64_t>(1, kRangeValues / touched[t].dim));
      values += rows[t] * touched[t].dim;
    }
    ByRangesOfTables(c, rows, step, values, [&](size_t t, int64_t begin, int64_t end) {
      ApplyToRange(touched[t], rule, held[static_cast<int>(t)].table(), begin, end);
    });
  }

  // Rows [begin, end) of the table.
  static void ApplyToRange(const TouchedTable<float>& touched, const AllRowsRule& rule,
                           const DenseTable& table, int64_t begin, int64_t end) {
    const int64_t* rows = touched.rows.rows.get();
    const int64_t* behind = rows + touched.rows.unique;
    const int64_t first = std::lower_bound(rows, behind, begin) - rows;
    const int64_t last = std::lower_bound(rows + first, behind, end) - rows;
    Apply(touched, rule, table, first, last);
    for (int64_t i = first; i < last; ++i) {
      UpdateOthers(rule, table, begin, rows[i]);
      begin = rows[i] + 1;
    }
    UpdateOthers(rule, table, begin, end);
  }

  Attributes attributes_;
  const RuleKind* kind_ = nullptr;
  std::vector<int64_t> columns_;
  bool use_locking_ = false;
};

#define WORKBENCH_APPLY_KERNELS(op)                                      \
  WORKBENCH_GROUPED_KERNEL(op, float, int32_t, ApplyOp<int32_t>);        \
  WORKBENCH_GROUPED_KERNEL(op, float, int64_t, ApplyOp<int64_t>)
WORKBENCH_APPLY_KERNELS("WorkbenchGroupedApply");
WORKBENCH_APPLY_KERNELS("WorkbenchResourceGroupedApply");
WORKBENCH_APPLY_KERNELS("WorkbenchGroupedApplyAll");
WORKBENCH_APPLY_KERNELS("WorkbenchResourceGroupedApplyAll");
#undef WORKBENCH_APPLY_KERNELS

}  // namespace
}  // namespace workbench::grouped
