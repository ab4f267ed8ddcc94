#include "staging/buffer_resource.h"

#include "absl/strings/str_cat.h"

namespace workbench {

using tensorflow::DataTypeVectorString;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;

ItemDtypes::ItemDtypes(OpKernelConstruction* context) {
  OP_REQUIRES_OK(context, context->GetAttr("dtypes", &record));
  OP_REQUIRES_OK(context, context->GetAttr("host_dtypes", &host_record));
}

std::string ItemDtypes::DebugString() const {
  std::string text = absl::StrCat(record.size(), " tensors ", DataTypeVectorString(record));
  if (!host_record.empty()) {
    absl::StrAppend(&text, record.empty() ? "" : " ", "and ", host_record.size(), " host tensors ",
                    DataTypeVectorString(host_record));
  }
  return text;
}

std::string BufferResource::DebugString() const {
  return absl::StrCat("buffer of stage '", buffer_->stage(), "': ", buffer_->Size(), " of ",
                      buffer_->capacity(), " items");
}

absl::Status BufferResource::CheckDtypes(const std::string& op, const ItemDtypes& dtypes) {
  tensorflow::mutex_lock lock(mu_);
  if (!fixed_) {
    fixed_ = true;
    fixed_by_ = op;
    dtypes_ = dtypes;
  }
  if (dtypes.record == dtypes_.record && dtypes.host_record == dtypes_.host_record) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "items of stage '", buffer_->stage(), "' have ", dtypes_.DebugString(), ", as '", fixed_by_,
      "' said first, but '", op, "' has ", dtypes.DebugString(),
      "; put and take of one buffer must agree"));
}

BufferAddress::BufferAddress(OpKernelConstruction* context) {
  OP_REQUIRES_OK(context, context->GetAttr("container", &container_));
  OP_REQUIRES_OK(context, context->GetAttr("shared_name", &shared_name_));
  OP_REQUIRES_OK(context, context->GetAttr("stage", &stage_));
  OP_REQUIRES_OK(context, context->GetAttr("capacity", &capacity_));
  OP_REQUIRES(context, !shared_name_.empty(),
              absl::InvalidArgumentError(absl::StrCat(
                  "'", context->def().name(),
                  "' has an empty shared_name; the ops of one buffer find each other by it")));
  if (stage_.empty()) stage_ = shared_name_;
  name_ = absl::StrCat(container_, "/", shared_name_);
}

absl::Status BufferAddress::Find(
    OpKernelContext* context, tensorflow::core::RefCountPtr<BufferResource>* resource) const {
  tensorflow::ResourceMgr* manager = context->resource_manager();
  BufferResource* found = nullptr;
  TF_RETURN_IF_ERROR(manager->LookupOrCreate<BufferResource>(
      container_.empty() ? manager->default_container() : container_, shared_name_, &found,
      [this](BufferResource** made) {
        *made = new BufferResource(stage_, capacity_);
        return absl::OkStatus();
      }));
  resource->reset(found);
  const int64_t capacity = found->buffer()->capacity();
  if (capacity == capacity_) return absl::OkStatus();
  return ToStatus(CapacityMismatch(stage_, capacity, capacity_));
}

absl::Status ToStatus(const Outcome& outcome) {
  return absl::Status(static_cast<absl::StatusCode>(outcome.code), outcome.message);
}

}  // namespace workbench
