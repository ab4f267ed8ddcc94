#ifndef WORKBENCH_LOOKUP_GROUPED_GROUPED_TABLES_H_
#define WORKBENCH_LOOKUP_GROUPED_GROUPED_TABLES_H_

// The tables that kernels of grouped lookups read.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lookup/grouped/tables_in_huge_pages.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace workbench::grouped {

// The tables, held until the lookup is done.
template <typename T, bool kResource>
class Tables {
 public:
  // dims: expected of each table.
  absl::Status Read(tensorflow::OpKernelContext* c, const std::vector<int64_t>& dims) {
    tensorflow::OpInputList inputs;
    TF_RETURN_IF_ERROR(c->input_list("tables", &inputs));
    if constexpr (kResource) {
      TF_RETURN_IF_ERROR(Lock(c, inputs));
    } else {
      for (const tensorflow::Tensor& each : inputs) tensors_.push_back(&each);
    }
    for (size_t t = 0; t < tensors_.size(); ++t) {
      if (tensors_[t]->dims() != 2 || tensors_[t]->dim_size(1) != dims[t]) {
        return absl::InvalidArgumentError(absl::StrCat("table ", t, " has shape ",
                                                       tensors_[t]->shape().DebugString(),
                                                       "; expected [rows, ", dims[t], "]"));
      }
      const auto bytes = tensors_[t]->tensor_data();
      MoveIntoHugePages(bytes.data(), bytes.size());
    }
    return absl::OkStatus();
  }

  const tensorflow::Tensor& operator[](int table) const { return *tensors_[table]; }

  std::vector<int64_t> rows() const {
    std::vector<int64_t> found;
    for (const tensorflow::Tensor* each : tensors_) found.push_back(each->dim_size(0));
    return found;
  }

 private:
  // Shared locks, in the order of their addresses as all who take several do; an update of single
  // rows waits, a copy is never needed.
  absl::Status Lock(tensorflow::OpKernelContext* c, const tensorflow::OpInputList& handles) {
    std::vector<decltype(std::declval<tensorflow::Var>().mu())> mutexes;
    for (int t = 0; t < handles.size(); ++t) {
      tensorflow::core::RefCountPtr<tensorflow::Var> variable;
      const auto& handle = handles[t].scalar<tensorflow::ResourceHandle>()();
      const absl::Status found = tensorflow::LookupResource(c, handle, &variable);
      if (!found.ok()) return NotInitialized(handle.name());
      names_.push_back(handle.name());
      mutexes.push_back(variable->mu());
      variables_.push_back(std::move(variable));
    }
    std::sort(mutexes.begin(), mutexes.end());
    mutexes.erase(std::unique(mutexes.begin(), mutexes.end()), mutexes.end());
    for (auto* each : mutexes) {
      locks_.push_back(std::make_unique<tensorflow::tf_shared_lock>(*each));
    }
    for (size_t t = 0; t < variables_.size(); ++t) {
      tensorflow::Var* each = variables_[t].get();
      if (!each->is_initialized || each->tensor()->dtype() != tensorflow::DataTypeToEnum<T>::v()) {
        return NotInitialized(names_[t]);
      }
      tensors_.push_back(each->tensor());
    }
    return absl::OkStatus();
  }

  static absl::Status NotInitialized(const std::string& name) {
    return absl::FailedPreconditionError(absl::StrCat(
        "table '", name, "' is not initialized, or not of type ",
        tensorflow::DataTypeString(tensorflow::DataTypeToEnum<T>::v()),
        "; run its initializer first"));
  }

  std::vector<std::string> names_;
  std::vector<tensorflow::core::RefCountPtr<tensorflow::Var>> variables_;
  std::vector<std::unique_ptr<tensorflow::tf_shared_lock>> locks_;
  std::vector<const tensorflow::Tensor*> tensors_;
};

}  // namespace workbench::grouped

#endif  // WORKBENCH_LOOKUP_GROUPED_GROUPED_TABLES_H_
