// The kernel of the gradient of grouped lookups, see grouped_ops.cc.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "combine/combine.h"
#include "lookup/grouped/touched_tables.h"
#include "lookup/grouped/grouped_inputs.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace workbench::grouped {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::OpOutputList;
using tensorflow::Tensor;
using tensorflow::TensorShape;

template <typename T, typename Id>
class LookUpGradOp : public OpKernel {
 public:
  explicit LookUpGradOp(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, attributes_.Read(c));
  }

  void Compute(OpKernelContext* c) override {
    std::vector<TouchedTable<T>> touched;
    OP_REQUIRES_OK(c, (ReadTouched<T, Id>(c, attributes_, nullptr, &touched)));
    std::vector<T*> out;
    OP_REQUIRES_OK(c, Allocate(c, touched, &out));
    ByRowsOfTables(c, touched, 0, [&](size_t t, int64_t begin, int64_t end) {
      SumGradients(touched[t].ToSum(), begin, end, out[t] + begin * touched[t].dim);
    });
  }

 private:
  static absl::Status Allocate(OpKernelContext* c, const std::vector<TouchedTable<T>>& touched,
                               std::vector<T*>* out) {
    OpOutputList rows, gradients;
    TF_RETURN_IF_ERROR(c->output_list("table_rows", &rows));
    TF_RETURN_IF_ERROR(c->output_list("row_gradients", &gradients));
    for (size_t t = 0; t < touched.size(); ++t) {
      const int64_t count = touched[t].rows.unique;
      Tensor *at = nullptr, *to = nullptr;
      TF_RETURN_IF_ERROR(rows.allocate(t, TensorShape({count}), &at));
      TF_RETURN_IF_ERROR(gradients.allocate(t, TensorShape({count, touched[t].dim}), &to));
      std::copy_n(touched[t].rows.rows.get(), count, at->flat<int64_t>().data());
      out->push_back(to->flat<T>().data());
    }
    return absl::OkStatus();
  }

  Attributes attributes_;
};

WORKBENCH_GROUPED_KERNELS("WorkbenchGroupedLookUpGrad", LookUpGradOp);

}  // namespace
}  // namespace workbench::grouped
