#include <algorithm>

#include "absl/strings/str_cat.h"
#include "registration/guarded_kernel.h"
#include "variable/embedding_variable_resource.h"
#include "variable/variable_rules.h"

namespace workbench {
namespace {

using tensorflow::DEVICE_CPU;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

constexpr int kMostScalars = 6;

template <typename Rule, size_t kSlots>
class EmbeddingApplyOp : public OpKernel {
 public:
  explicit EmbeddingApplyOp(OpKernelConstruction* context) : OpKernel(context) {
    slots_.Read(context);
    OP_REQUIRES(context, slots_.count() == kSlots,
                absl::InvalidArgumentError(absl::StrCat("'", name(), "' names ", slots_.count(),
                                                        " slots; expected ", kSlots)));
  }

  void Compute(OpKernelContext* context) override {
    EmbeddingPtr resource;
    OP_REQUIRES_OK(context, FindTable(context, &resource));
    const int grads_at = context->num_inputs() - 2;
    const Tensor& grads = context->input(grads_at);
    const Tensor& keys = context->input(grads_at + 1);
    const int64_t dim = resource->table()->options().dim;
    OP_REQUIRES_OK(context, CheckCount(*resource, keys.NumElements()));
    OP_REQUIRES_OK(context,
                   CheckShape(*resource, "keys", keys, TensorShape({keys.NumElements()})));
    OP_REQUIRES_OK(context, CheckShape(*resource, "grads", grads,
                                       TensorShape({keys.NumElements(), dim})));
    Rule rule;
    OP_REQUIRES_OK(context, ReadRule(context, *resource, grads_at - 1, &rule));
    std::vector<int> numbers;
    OP_REQUIRES_OK(context, slots_.Find(resource.get(), &numbers));
    if (keys.NumElements() == 0) return;
    UpdateBatch batch;
    batch.keys = keys.flat<int64_t>().data();
    batch.count = keys.NumElements();
    batch.grads = grads.flat<float>().data();
    resource->table()->Update(batch, numbers, rule,
                              OnWorkers(context, batch.count, 400 + 10 * dim));
  }

 private:
  static absl::Status ReadRule(OpKernelContext* context, const EmbeddingResource& resource,
                               int count, Rule* rule) {
    float scalars[kMostScalars] = {};
    for (int i = 0; i < std::min(count, kMostScalars); ++i) {
      const Tensor& scalar = context->input(1 + i);
      TF_RETURN_IF_ERROR(CheckShape(resource, "an optimizer's number", scalar, TensorShape()));
      scalars[i] = scalar.scalar<float>()();
    }
    Take(scalars, rule);
    return absl::OkStatus();
  }

  NamedSlots slots_;
};

#define WORKBENCH_APPLY_KERNEL(op, rule, slots)                                                   \
  REGISTER_GUARDED_KERNEL(Name("WorkbenchEmbeddingApply" op).Device(DEVICE_CPU),                  \
                          EmbeddingApplyOp<rule, slots>)
WORKBENCH_APPLY_KERNEL("GradientDescent", GradientDescentRule, 0);
WORKBENCH_APPLY_KERNEL("Adagrad", AdagradRule, 1);
WORKBENCH_APPLY_KERNEL("Adam", AdamRule, 2);
WORKBENCH_APPLY_KERNEL("Ftrl", FtrlRule, 2);
#undef WORKBENCH_APPLY_KERNEL

}  // namespace
}  // namespace workbench
