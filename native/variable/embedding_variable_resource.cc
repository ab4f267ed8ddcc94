#include "variable/embedding_variable_resource.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/util/work_sharder.h"

namespace workbench {

using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;

std::string EmbeddingResource::DebugString() const {
  return absl::StrCat("EmbeddingVariable '", name_, "' of dimension ", table_.options().dim);
}

absl::Status FindTable(OpKernelContext* context, EmbeddingPtr* resource) {
  return FindTable(context, HandleFromInput(context, 0), resource);
}

absl::Status FindTable(OpKernelContext* context, const tensorflow::ResourceHandle& handle,
                       EmbeddingPtr* resource) {
  EmbeddingResource* found = nullptr;
  const absl::Status status = LookupResource(context, handle, &found);
  if (!status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat("'", context->op_kernel().name(), "' was given '",
                                     handle.name(), "'; expected the handle of an ",
                                     "EmbeddingVariable: ", status.message()));
  }
  resource->reset(found);
  return absl::OkStatus();
}

ForShards OnWorkers(OpKernelContext* context, int64_t keys, int64_t cost) {
  // Below this, waking another thread costs more than it does.
  constexpr int64_t kWorthIt = 100'000;  // cycles
  auto* workers = context->device()->tensorflow_cpu_worker_threads();
  if (workers == nullptr || workers->num_threads < 2 || keys * cost < kWorthIt) {
    return OnThisThread;
  }
  return [workers, each = keys * cost / kTableShards](const std::function<void(int, int)>& work) {
    tensorflow::Shard(workers->num_threads, workers->workers, kTableShards, each,
                      [&work](int64_t begin, int64_t end) {
                        work(static_cast<int>(begin), static_cast<int>(end));
                      });
  };
}

void NamedSlots::Read(OpKernelConstruction* context) {
  std::vector<std::string> names;
  std::vector<float> initials;
  OP_REQUIRES_OK(context, context->GetAttr("slot_names", &names));
  OP_REQUIRES_OK(context, context->GetAttr("slot_initials", &initials));
  OP_REQUIRES(context, names.size() == initials.size(),
              absl::InvalidArgumentError(absl::StrCat("slot_names has ", names.size(),
                                                      " entries, slot_initials ", initials.size(),
                                                      "; expected as many")));
  for (size_t i = 0; i < names.size(); ++i) slots_.push_back({names[i], initials[i]});
}

void NamedSlots::ReadWithTensors(OpKernelConstruction* context) {
  Read(context);
  if (!context->status().ok()) return;
  int tensors = 0;
  OP_REQUIRES_OK(context, context->GetAttr("num_slots", &tensors));
  OP_REQUIRES(context, static_cast<size_t>(tensors) == count(),
              absl::InvalidArgumentError(absl::StrCat("slot_names has ", count(),
                                                      " entries; expected num_slots = ",
                                                      tensors)));
}

absl::Status NamedSlots::Find(EmbeddingResource* resource, std::vector<int>* numbers) const {
  return FindSlotsOf(resource, slots_, numbers);
}

absl::Status FindSlotsOf(EmbeddingResource* resource, const std::vector<Slot>& slots,
                         std::vector<int>* numbers) {
  const std::string wrong = resource->table()->FindSlots(slots, numbers);
  if (wrong.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("EmbeddingVariable '", resource->name(), "': ", wrong));
}

absl::Status CheckShape(const EmbeddingResource& resource, const char* what,
                        const tensorflow::Tensor& tensor,
                        const tensorflow::TensorShape& expected) {
  if (tensor.shape() == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "EmbeddingVariable '", resource.name(), "': shape of ", what, " is ",
      tensor.shape().DebugString(), "; expected ", expected.DebugString()));
}

absl::Status CheckDefaultRows(const EmbeddingResource& resource,
                              const tensorflow::Tensor& default_rows) {
  const int64_t dim = resource.table_options().dim;
  if (default_rows.dims() == 2 && default_rows.dim_size(0) > 0 && default_rows.dim_size(1) == dim) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "EmbeddingVariable '", resource.name(), "': shape of default_rows is ",
      default_rows.shape().DebugString(), "; expected [n > 0, ", dim, "]"));
}

absl::Status CheckCount(const EmbeddingResource& resource, int64_t keys) {
  if (keys <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(keys, " keys at once for EmbeddingVariable '", resource.name(),
                   "'; expected at most ", std::numeric_limits<int32_t>::max()));
}

}  // namespace workbench
