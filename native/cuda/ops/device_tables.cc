#include "cuda/ops/device_tables.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuda/calls.h"
#include "cuda/ops/device_context.h"
#include "tensorflow/core/framework/resource_mgr.h"

namespace workbench::cuda {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;

absl::Status DeviceTables::HoldToRead(OpKernelContext* c, int count, tensorflow::DataType type) {
  if (c->input_dtype(0) != tensorflow::DT_RESOURCE) {
    for (int i = 0; i < count; ++i) tensors_.push_back(c->input(i));
    return absl::OkStatus();
  }
  TF_RETURN_IF_ERROR(Find(c, count));
  std::vector<Mutex> mutexes;
  for (const Variable& each : variables_) mutexes.push_back(each->mu());
  LockInOrder(std::move(mutexes), /*shared=*/true);
  for (int i = 0; i < count; ++i) {
    TF_RETURN_IF_ERROR(CheckVariable(i, type));
    tensors_.push_back(*variables_[i]->tensor());
  }
  return absl::OkStatus();
}

absl::Status DeviceTables::HoldToChange(OpKernelContext* c, int count) {
  std::vector<Mutex> mutexes;
  if (c->input_dtype(0) != tensorflow::DT_RESOURCE) {
    for (int i = 0; i < count; ++i) mutexes.push_back(c->input_ref_mutex(i));
    LockInOrder(std::move(mutexes), /*shared=*/false);
    for (int i = 0; i < count; ++i) {
      tensors_.push_back(c->mutable_input(i, /*lock_held=*/true));
      if (!tensors_[i].IsInitialized()) {
        return absl::FailedPreconditionError(
            "a table, or a slot of it, is not initialized; run its initializer first");
      }
    }
    return absl::OkStatus();
  }
  TF_RETURN_IF_ERROR(Find(c, count));
  for (const Variable& each : variables_) mutexes.push_back(each->mu());
  LockInOrder(std::move(mutexes), /*shared=*/false);
  for (int i = 0; i < count; ++i) {
    TF_RETURN_IF_ERROR(CheckVariable(i, tensorflow::DT_FLOAT));
    TF_RETURN_IF_ERROR(MakeOwn(c, variables_[i].get()));
    tensors_.push_back(*variables_[i]->tensor());
  }
  return absl::OkStatus();
}

absl::Status DeviceTables::CheckTable(int table, int64_t dim) const {
  const Tensor& found = tensors_[table];
  if (found.dims() == 2 && (dim < 0 || found.dim_size(1) == dim)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("table ", table, " has shape ", found.shape().DebugString(),
                   "; expected [rows, ", dim < 0 ? std::string("dim") : absl::StrCat(dim), "]"));
}

absl::Status DeviceTables::Find(OpKernelContext* c, int count) {
  variables_.resize(count);
  for (int i = 0; i < count; ++i) {
    TF_RETURN_IF_ERROR(
        tensorflow::LookupResource(c, tensorflow::HandleFromInput(c, i), &variables_[i]));
  }
  return absl::OkStatus();
}

absl::Status DeviceTables::CheckVariable(int input, tensorflow::DataType type) const {
  tensorflow::Var* variable = variables_[input].get();
  if (variable->is_initialized && variable->tensor()->dtype() == type) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the table is not initialized, or not of type ",
                   tensorflow::DataTypeString(type), "; run its initializer first"));
}

void DeviceTables::LockInOrder(std::vector<Mutex> mutexes, bool shared) {
  std::sort(mutexes.begin(), mutexes.end());
  mutexes.erase(std::unique(mutexes.begin(), mutexes.end()), mutexes.end());
  for (Mutex each : mutexes) {
    if (shared) {
      shared_locks_.push_back(std::make_unique<tensorflow::tf_shared_lock>(*each));
    } else {
      locks_.push_back(std::make_unique<tensorflow::mutex_lock>(*each));
    }
  }
}

absl::Status DeviceTables::MakeOwn(OpKernelContext* c, tensorflow::Var* variable) {
  if (variable->copy_on_read_mode.load()) return absl::OkStatus();
  if (!variable->tensor()->RefCountIsOne()) {
    const Tensor& shared = *variable->tensor();
    Tensor own;
    TF_RETURN_IF_ERROR(c->allocate_temp(shared.dtype(), shared.shape(), &own));
    TF_RETURN_IF_ERROR(CudaStatus(
        workbench_cuda_copy(StreamOf(c), shared.tensor_data().data(), shared.TotalBytes(),
                            own.data()),
        "copying a table that others read"));
    *variable->tensor() = own;
  }
  // From now on whoever reads the variable gets a copy.
  variable->copy_on_read_mode.store(true);
  return absl::OkStatus();
}

}  // namespace workbench::cuda
