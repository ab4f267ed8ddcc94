// The kernel of IdColumns, see id_columns_ops.cc.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lookup/id_columns.h"
#include "registration/guarded_kernel.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "threading/intra_op_threads.h"

namespace workbench {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

template <typename From, typename Id>
class IdColumnsOp : public OpKernel {
 public:
  explicit IdColumnsOp(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, c->GetAttr("columns", &columns_));
    OP_REQUIRES_OK(c, c->GetAttr("widths", &widths_));
    OP_REQUIRES_OK(c, c->GetAttr("table_rows", &table_rows_));
    const size_t count = c->num_inputs();
    OP_REQUIRES(
        c, columns_.size() == count && widths_.size() == count && table_rows_.size() == count,
        absl::InvalidArgumentError(absl::StrCat(
            "columns, widths and table_rows have ", columns_.size(), ", ", widths_.size(), " and ",
            table_rows_.size(), " values; expected ", count)));
    for (int64_t each : table_rows_) {
      OP_REQUIRES(c, each >= 0 && each <= std::numeric_limits<Id>::max(),
                  absl::InvalidArgumentError(absl::StrCat("a table of ", each, " rows")));
    }
    for (int64_t each : widths_) {
      OP_REQUIRES(c, each >= 0, absl::InvalidArgumentError(absl::StrCat(each, " columns")));
    }
  }

  void Compute(OpKernelContext* c) override {
    const int count = c->num_inputs();
    std::vector<IdColumns<From, Id>> columns(count);
    int64_t rows = 0, ids = 0;
    for (int i = 0; i < count; ++i) {
      OP_REQUIRES_OK(c, Prepare(c, i, &columns[i]));
      rows = std::max(rows, columns[i].rows);
      ids += columns[i].rows * columns[i].width;
    }
    const int64_t blocks = (rows + kIdRowsAtOnce - 1) / kIdRowsAtOnce;
    ByCost(c, blocks, ids, [&](int64_t begin, int64_t end) {
      CountFromEnd(columns.data(), count, begin * kIdRowsAtOnce, end * kIdRowsAtOnce);
    });
  }

 private:
  // Where the ids of a feature lie, and its output.
  absl::Status Prepare(OpKernelContext* c, int i, IdColumns<From, Id>* out) const {
    const Tensor& given = c->input(i);
    TensorShape shape = given.shape();
    const From* from = given.flat<From>().data();
    if (columns_[i] < 0) {
      out->rows = given.NumElements();
    } else {
      const int64_t width = std::max<int64_t>(1, widths_[i]);
      if (shape.dims() != 2 || columns_[i] > shape.dim_size(1) - width) {
        return absl::InvalidArgumentError(absl::StrCat("columns from ", columns_[i], ", ", width,
                                                       " of them, are not in ids of shape ",
                                                       shape.DebugString()));
      }
      out->rows = shape.dim_size(0);
      out->stride = shape.dim_size(1);
      out->width = width;
      // Of no rows there may be no memory.
      if (out->rows > 0) from += columns_[i];
      shape = TensorShape({out->rows});
      if (widths_[i] > 0) shape.AddDim(width);
    }
    Tensor* to = nullptr;
    TF_RETURN_IF_ERROR(c->allocate_output(i, shape, &to));
    out->from = from;
    out->to = to->flat<Id>().data();
    out->table_rows = static_cast<Id>(table_rows_[i]);
    return absl::OkStatus();
  }

  std::vector<int64_t> columns_, widths_, table_rows_;
};

#define WORKBENCH_ID_COLUMNS_TO(From, Id)                     \
  REGISTER_GUARDED_KERNEL(Name("WorkbenchIdColumns")          \
                              .Device(tensorflow::DEVICE_CPU) \
                              .TypeConstraint<From>("T")      \
                              .TypeConstraint<Id>("Tid"),     \
                          IdColumnsOp<From, Id>)
#define WORKBENCH_ID_COLUMNS(From)        \
  WORKBENCH_ID_COLUMNS_TO(From, int32_t); \
  WORKBENCH_ID_COLUMNS_TO(From, int64_t)
WORKBENCH_ID_COLUMNS(int32_t);
WORKBENCH_ID_COLUMNS(int64_t);
WORKBENCH_ID_COLUMNS(float);
#undef WORKBENCH_ID_COLUMNS
#undef WORKBENCH_ID_COLUMNS_TO

}  // namespace
}  // namespace workbench
