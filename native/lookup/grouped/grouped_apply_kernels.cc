// The kernel of the gradient of grouped lookups with an optimizer's update in it, see
// grouped_ops.cc.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "combine/combine.h"
#include "lookup/grouped/asked_tables.h"
#include "lookup/grouped/grouped_inputs.h"
#include "optimizer/row_updates.h"
#include "optimizer/rule_inputs.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace workbench::grouped {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;

// Sums stay in the nearest cache until they are applied.
constexpr int64_t kSumBytes = 16 << 10;
constexpr int64_t kMostRows = 64;
// Nanoseconds until a row is there that no cache has, some being fetched at a time.
constexpr int64_t kFarRow = 30;

template <typename Id>
class ApplyOp : public OpKernel {
 public:
  explicit ApplyOp(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, attributes_.Read(c));
    OP_REQUIRES_OK(c, RuleOf(c, Tables(), &kind_));
    OP_REQUIRES_OK(c, c->GetAttr("use_locking", &use_locking_));
    OP_REQUIRES_OK(c, c->GetAttr("columns", &columns_));
    OP_REQUIRES(c, columns_.size() == static_cast<size_t>(attributes_.count()),
                absl::InvalidArgumentError(absl::StrCat(
                    "columns has ", columns_.size(), " values; expected ", attributes_.count())));
  }

  void Compute(OpKernelContext* c) override {
    std::unique_ptr<UpdateRule> rule;
    OP_REQUIRES_OK(c, ReadRule(c, *kind_, &rule));
    std::vector<AskedTable<float>> asked;
    OP_REQUIRES_OK(c, (ReadAsked<float, Id>(c, attributes_, &columns_, &asked)));
    const auto* threads = c->device()->tensorflow_cpu_worker_threads();
    if (Tables() < 2 * threads->num_threads) {
      for (int t = 0; t < Tables(); ++t) {
        OP_REQUIRES_OK(c, Update(c, asked, t, *rule, /*on_threads=*/true));
      }
      return;
    }
    // Many tables keep all threads busy, each with one at a time.
    FirstError error;
    threads->workers->ParallelFor(Tables(), CostOfTable(asked), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        absl::Status status = Update(c, asked, t, *rule, /*on_threads=*/false);
        if (!status.ok()) error.Found(t, std::move(status));
      }
    });
    OP_REQUIRES_OK(c, error.status());
  }

 private:
  int Tables() const { return static_cast<int>(attributes_.dims().size()); }

  // A thread that waits for a table's lock holds no other one's.
  absl::Status Update(OpKernelContext* c, const std::vector<AskedTable<float>>& asked, int t,
                      const UpdateRule& rule, bool on_threads) const {
    HeldTable held;
    TF_RETURN_IF_ERROR(held.Hold(c, *kind_, t, Tables() + t * kind_->slots, use_locking_));
    TF_RETURN_IF_ERROR(Check(asked[t], held));
    const auto part = [&](size_t, int64_t begin, int64_t end) {
      Apply(asked[t], rule, held.table(), begin, end);
    };
    if (on_threads) {
      ByRowsOfTables(c, asked, t, t + 1, part);
    } else {
      part(t, 0, asked[t].rows.unique);
    }
    return absl::OkStatus();
  }

  // Nanoseconds, on average: the rows of table and slots are far away.
  int64_t CostOfTable(const std::vector<AskedTable<float>>& asked) const {
    int64_t cost = 0;
    for (const AskedTable<float>& each : asked) {
      cost += each.rows.ids * CostOfId(each.dim * sizeof(float)) +
              each.rows.unique * (kind_->slots + 1) * kFarRow;
    }
    return cost / Tables();
  }

  static absl::Status Check(const AskedTable<float>& asked, const HeldTable& held) {
    if (held.shape().dims() != 2 || held.shape().dim_size(1) != asked.dim) {
      return absl::InvalidArgumentError(absl::StrCat("a table has shape ",
                                                     held.shape().DebugString(),
                                                     "; expected [rows, ", asked.dim, "]"));
    }
    const int64_t count = asked.rows.unique;
    if (count > 0 && asked.rows.rows[count - 1] >= held.rows()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "row ", asked.rows.rows[count - 1], " is not in a table of ", held.rows(), " rows"));
    }
    return absl::OkStatus();
  }

  static void Apply(const AskedTable<float>& asked, const UpdateRule& rule,
                    const DenseTable& table, int64_t begin, int64_t end) {
    const int64_t at_once = std::clamp<int64_t>(
        kSumBytes / static_cast<int64_t>((table.dim + 1) * sizeof(float)), 1, kMostRows);
    const AskedRows<float> in = asked.ToSum();
    const int64_t* rows = asked.rows.rows.get();
    const std::unique_ptr<float[]> sums = Unset<float>(at_once * table.dim);
    for (int64_t first = begin; first < end; first += at_once) {
      const int64_t count = std::min(at_once, end - first);
      FetchRows(table, rows + first, count);
      SumGradients(in, first, first + count, sums.get());
      UpdateRows(rule, table, rows + first, sums.get(), 0, count);
    }
  }

  Attributes attributes_;
  const RuleKind* kind_ = nullptr;
  std::vector<int64_t> columns_;
  bool use_locking_ = false;
};

WORKBENCH_GROUPED_KERNEL("WorkbenchGroupedApply", float, int32_t, ApplyOp<int32_t>);
WORKBENCH_GROUPED_KERNEL("WorkbenchGroupedApply", float, int64_t, ApplyOp<int64_t>);
WORKBENCH_GROUPED_KERNEL("WorkbenchResourceGroupedApply", float, int32_t, ApplyOp<int32_t>);
WORKBENCH_GROUPED_KERNEL("WorkbenchResourceGroupedApply", float, int64_t, ApplyOp<int64_t>);

}  // namespace
}  // namespace workbench::grouped
