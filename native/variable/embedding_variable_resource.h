#ifndef WORKBENCH_VARIABLE_EMBEDDING_VARIABLE_RESOURCE_H_
#define WORKBENCH_VARIABLE_EMBEDDING_VARIABLE_RESOURCE_H_

#include <string>
#include <utility>
#include <vector>

#include "table/embedding_table.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"

namespace workbench {

// An embedding variable's table in a device's resource manager.
class EmbeddingResource : public tensorflow::ResourceBase {
 public:
  EmbeddingResource(std::string name, const TableOptions& options)
      : name_(std::move(name)), table_(options) {}

  const std::string& name() const { return name_; }
  EmbeddingTable* table() { return &table_; }
  const TableOptions& table_options() const { return table_.options(); }
  std::string DebugString() const override;

 private:
  const std::string name_;
  EmbeddingTable table_;
};

using EmbeddingPtr = tensorflow::core::RefCountPtr<EmbeddingResource>;

// The table that input 0 is the handle of.
absl::Status FindTable(tensorflow::OpKernelContext* context, EmbeddingPtr* resource);

// The table of a handle.
absl::Status FindTable(tensorflow::OpKernelContext* context,
                       const tensorflow::ResourceHandle& handle, EmbeddingPtr* resource);

// Spreads a batch over the intra-op threads, if it is worth it; `cost` is in cycles of one key.
ForShards OnWorkers(tensorflow::OpKernelContext* context, int64_t keys, int64_t cost);

// The numbers of a table's slots.
absl::Status FindSlotsOf(EmbeddingResource* resource, const std::vector<Slot>& slots,
                         std::vector<int>* numbers);

// The slots that a kernel names.
class NamedSlots {
 public:
  void Read(tensorflow::OpKernelConstruction* context);
  // The same of an op that has a tensor for each slot.
  void ReadWithTensors(tensorflow::OpKernelConstruction* context);
  size_t count() const { return slots_.size(); }
  const std::vector<Slot>& slots() const { return slots_; }
  absl::Status Find(EmbeddingResource* resource, std::vector<int>* numbers) const;

 private:
  std::vector<Slot> slots_;
};

absl::Status CheckShape(const EmbeddingResource& resource, const char* what,
                        const tensorflow::Tensor& tensor, const tensorflow::TensorShape& expected);

// Default rows must be [n > 0, dim].
absl::Status CheckDefaultRows(const EmbeddingResource& resource,
                              const tensorflow::Tensor& default_rows);

// More keys than a position of 32 bits counts.
absl::Status CheckCount(const EmbeddingResource& resource, int64_t keys);

}  // namespace workbench

#endif  // WORKBENCH_VARIABLE_EMBEDDING_VARIABLE_RESOURCE_H_
