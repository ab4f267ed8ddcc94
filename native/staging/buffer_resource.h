#ifndef WORKBENCH_STAGING_BUFFER_RESOURCE_H_
#define WORKBENCH_STAGING_BUFFER_RESOURCE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "staging/buffer/stage_buffer.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/mutex.h"

namespace workbench {

using TensorRecord = std::vector<tensorflow::Tensor>;
using TensorBuffer = StageBuffer<TensorRecord>;

// The dtypes of an item, in their order: first those in the memory of the buffer's device,
// then those in the host's memory on every device. On a CPU the two are alike.
struct ItemDtypes {
  ItemDtypes() = default;
  // Reads the attributes of a kernel; fails its construction if they are missing.
  explicit ItemDtypes(tensorflow::OpKernelConstruction* context);
  std::string DebugString() const;

  tensorflow::DataTypeVector record;
  tensorflow::DataTypeVector host_record;
};

// A buffer in a device's resource manager. Calls that wait share the buffer, not this resource:
// clearing its container destroys the resource, which ends these calls.
class BufferResource : public tensorflow::ResourceBase {
 public:
  BufferResource(std::string stage, int64_t capacity)
      : buffer_(TensorBuffer::Create(std::move(stage), capacity)) {}
  ~BufferResource() override { buffer_->Shutdown(); }

  const std::shared_ptr<TensorBuffer>& buffer() const { return buffer_; }
  std::string DebugString() const override;

  // The first put or take fixes the dtypes of an item; `op` is in the message of a mismatch. Both
  // lists must agree, on a CPU too: the list of a tensor says in which memory take's output is.
  absl::Status CheckDtypes(const std::string& op, const ItemDtypes& dtypes);

 private:
  const std::shared_ptr<TensorBuffer> buffer_;
  tensorflow::mutex mu_;  // Held for the comparison only; no other lock is taken under it.
  bool fixed_ TF_GUARDED_BY(mu_) = false;
  std::string fixed_by_ TF_GUARDED_BY(mu_);
  ItemDtypes dtypes_ TF_GUARDED_BY(mu_);
};

// A kernel's attributes by which it finds its buffer in the resource manager.
class BufferAddress {
 public:
  // Fails the kernel's construction if an attribute is missing or shared_name is empty.
  explicit BufferAddress(tensorflow::OpKernelConstruction* context);

  // Of the buffer, as its ops have it.
  const std::string& name() const { return name_; }

  // Finds or creates the buffer; fails if it has another capacity.
  absl::Status Find(tensorflow::OpKernelContext* context,
                    tensorflow::core::RefCountPtr<BufferResource>* resource) const;

 private:
  std::string stage_;
  std::string container_;
  std::string shared_name_;
  std::string name_;
  int64_t capacity_ = 1;
};

absl::Status ToStatus(const Outcome& outcome);

}  // namespace workbench

#endif  // WORKBENCH_STAGING_BUFFER_RESOURCE_H_
