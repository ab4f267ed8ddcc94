#include "absl/strings/str_cat.h"
#include "registration/guarded_kernel.h"
#include "variable/embedding_variable_resource.h"

namespace workbench {
namespace {

using tensorflow::DEVICE_CPU;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

constexpr int64_t kCopyCost = 100;  // cycles of a row

class EmbeddingExportOp : public OpKernel {
 public:
  explicit EmbeddingExportOp(OpKernelConstruction* context) : OpKernel(context) {
    slots_.ReadWithTensors(context);
    int steps = 0;
    OP_REQUIRES_OK(context, context->GetAttr("num_steps", &steps));
    OP_REQUIRES_OK(context, context->GetAttr("steps_to_live", &steps_to_live_));
    OP_REQUIRES(context, steps == (steps_to_live_ > 0 ? 1 : 0),
                absl::InvalidArgumentError(absl::StrCat("'", name(), "' has ", steps,
                                                        " steps; expected one if and only if ",
                                                        "steps_to_live is above 0")));
  }

  void Compute(OpKernelContext* context) override {
    EmbeddingPtr resource;
    OP_REQUIRES_OK(context, FindTable(context, &resource));
    std::vector<int> numbers;
    OP_REQUIRES_OK(context, slots_.Find(resource.get(), &numbers));
    Eviction eviction;
    if (steps_to_live_ > 0) {
      OP_REQUIRES_OK(context, CheckShape(*resource, "step", context->input(1), TensorShape()));
      eviction = {context->input(1).scalar<int64_t>()(), steps_to_live_};
    }
    const TableOptions& options = resource->table()->options();
    absl::Status status;
    const auto allocate = [&](const TableSizes& sizes, RowTargets* to) {
      status = Allocate(context, options, sizes, to);
      return status.ok();
    };
    const int64_t rows = resource->table()->Sizes().rows;
    resource->table()->Export(eviction, numbers, allocate,
                              OnWorkers(context, rows, kCopyCost + 2 * options.dim));
    OP_REQUIRES_OK(context, status);
  }

 private:
  absl::Status Allocate(OpKernelContext* context, const TableOptions& options,
                        const TableSizes& sizes, RowTargets* to) const {
    const auto keys = [&](int output, int64_t count, int64_t** data) -> absl::Status {
      Tensor* tensor = nullptr;
      TF_RETURN_IF_ERROR(context->allocate_output(output, TensorShape({count}), &tensor));
      *data = tensor->vec<int64_t>().data();
      return absl::OkStatus();
    };
    const auto rows = [&](int output, float** data) -> absl::Status {
      Tensor* tensor = nullptr;
      TF_RETURN_IF_ERROR(
          context->allocate_output(output, TensorShape({sizes.rows, options.dim}), &tensor));
      *data = tensor->matrix<float>().data();
      return absl::OkStatus();
    };
    TF_RETURN_IF_ERROR(keys(0, sizes.rows, &to->keys));
    TF_RETURN_IF_ERROR(rows(1, &to->values));
    TF_RETURN_IF_ERROR(keys(2, options.keep_freqs() ? sizes.rows : 0, &to->freqs));
    TF_RETURN_IF_ERROR(keys(3, options.keep_versions ? sizes.rows : 0, &to->versions));
    if (!options.keep_freqs()) to->freqs = nullptr;
    if (!options.keep_versions) to->versions = nullptr;
    TF_RETURN_IF_ERROR(keys(4, sizes.filtered, &to->filtered_keys));
    TF_RETURN_IF_ERROR(AllocateFilter(context, options, sizes, to));
    to->slots.resize(slots_.count());
    for (size_t s = 0; s < slots_.count(); ++s) {
      TF_RETURN_IF_ERROR(rows(6 + static_cast<int>(s), &to->slots[s]));
    }
    return absl::OkStatus();
  }

  // [filtered]; with versions [filtered, 2]; the words of a Bloom filter where there is one.
  static absl::Status AllocateFilter(OpKernelContext* context, const TableOptions& options,
                                     const TableSizes& sizes, RowTargets* to) {
    const bool bloom = sizes.bloom_words > 0;
    TensorShape shape({bloom ? sizes.bloom_words : sizes.filtered});
    const bool versions = !bloom && options.keep_versions && options.filter_freq > 0;
    if (versions) shape.AddDim(2);
    Tensor* tensor = nullptr;
    TF_RETURN_IF_ERROR(context->allocate_output(5, shape, &tensor));
    int64_t* data = tensor->flat<int64_t>().data();
    if (bloom) {
      to->bloom = data;
      return absl::OkStatus();
    }
    to->filtered_freqs = data;
    if (versions) {
      to->filtered_versions = data + 1;
      to->filtered_stride = 2;
    }
    return absl::OkStatus();
  }

  NamedSlots slots_;
  int64_t steps_to_live_ = 0;
};

class EmbeddingImportOp : public OpKernel {
 public:
  explicit EmbeddingImportOp(OpKernelConstruction* context) : OpKernel(context) {
    slots_.ReadWithTensors(context);
    OP_REQUIRES_OK(context, context->GetAttr("part", &part_.part));
    OP_REQUIRES_OK(context, context->GetAttr("parts", &part_.count));
  }

  void Compute(OpKernelContext* context) override {
    EmbeddingPtr resource;
    OP_REQUIRES_OK(context, FindTable(context, &resource));
    const TableOptions& options = resource->table()->options();
    RowSources from;
    OP_REQUIRES_OK(context, Check(context, *resource));
    const int64_t rows = context->input(1).NumElements();
    from.keys = Keys(context, 1);
    from.values = context->input(2).flat<float>().data();
    if (context->input(3).NumElements() == rows) from.freqs = Keys(context, 3);
    if (context->input(4).NumElements() == rows) from.versions = Keys(context, 4);
    from.filtered_keys = Keys(context, 5);
    const Tensor& filter = context->input(6);
    const bool bloom = context->input(5).NumElements() == 0;
    if (bloom) {
      from.bloom = Keys(context, 6);
    } else {
      from.filtered_freqs = Keys(context, 6);
      from.filtered_stride = filter.dims();
      if (filter.dims() == 2) from.filtered_versions = from.filtered_freqs + 1;
    }
    for (size_t s = 0; s < slots_.count(); ++s) {
      from.slots.push_back(context->input(7 + s).flat<float>().data());
    }
    std::vector<int> numbers;
    OP_REQUIRES_OK(context, slots_.Find(resource.get(), &numbers));
    const std::string wrong = resource->table()->Import(
        from, rows, context->input(5).NumElements(), bloom ? filter.NumElements() : 0, numbers,
        part_,
        OnWorkers(context, rows, 2 * kCopyCost + 2 * options.dim));
    OP_REQUIRES(context, wrong.empty(),
                absl::InvalidArgumentError(absl::StrCat("the checkpoint of EmbeddingVariable '",
                                                        resource->name(), "' is damaged: ",
                                                        wrong)));
  }

 private:
  static const int64_t* Keys(OpKernelContext* context, int input) {
    return context->input(input).flat<int64_t>().data();
  }

  absl::Status Check(OpKernelContext* context, const EmbeddingResource& resource) const {
    const int64_t rows = context->input(1).NumElements();
    const TensorShape each({rows}), none({0});
    const TensorShape values({rows, resource.table_options().dim});
    TF_RETURN_IF_ERROR(CheckCount(resource, rows));
    TF_RETURN_IF_ERROR(CheckShape(resource, "the checkpoint's keys", context->input(1), each));
    TF_RETURN_IF_ERROR(CheckShape(resource, "the checkpoint's values", context->input(2), values));
    for (int i : {3, 4}) {
      if (context->input(i).shape() == none) continue;  // They were not kept.
      TF_RETURN_IF_ERROR(CheckShape(resource, i == 3 ? "the checkpoint's freqs"
                                                     : "the checkpoint's versions",
                                    context->input(i), each));
    }
    const int64_t filtered = context->input(5).NumElements();
    TF_RETURN_IF_ERROR(CheckCount(resource, filtered));
    TF_RETURN_IF_ERROR(CheckShape(resource, "the checkpoint's filtered keys", context->input(5),
                                  TensorShape({filtered})));
    const Tensor& filter = context->input(6);
    // Of a Bloom filter they are its words, and there are no keys.
    if ((filtered > 0 || filter.dims() != 1) && filter.shape() != TensorShape({filtered, 2})) {
      TF_RETURN_IF_ERROR(CheckShape(resource, "the checkpoint's filtered freqs", filter,
                                    TensorShape({filtered})));
    }
    for (size_t s = 0; s < slots_.count(); ++s) {
      TF_RETURN_IF_ERROR(CheckShape(
          resource, absl::StrCat("the checkpoint's slot ", slots_.slots()[s].name).c_str(),
          context->input(7 + s), values));
    }
    return absl::OkStatus();
  }

  NamedSlots slots_;
  KeyPart part_;
};

REGISTER_GUARDED_KERNEL(Name("WorkbenchEmbeddingExport").Device(DEVICE_CPU), EmbeddingExportOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchEmbeddingImport").Device(DEVICE_CPU), EmbeddingImportOp);

}  // namespace
}  // namespace workbench
