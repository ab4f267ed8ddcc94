#include "cuda/ops/device_context.h"

#include <atomic>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuda/complaint.h"
#include "tensorflow/core/common_runtime/device/device_event_mgr.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/lib/core/threadpool.h"
#include "xla/stream_executor/activate_context.h"
#include "xla/stream_executor/stream.h"
#include "xla/stream_executor/stream_executor.h"

namespace workbench::cuda {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

void* StreamOf(OpKernelContext* c) {
  return c->op_device_context()->stream()->platform_specific_handle().stream;
}

absl::Status CudaStatus(int error, const char* what) {
  if (error == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(what, " on the GPU failed: ", workbench_cuda_error(error),
                                          " (CUDA error ", error, ")"));
}

absl::Status AllocateBytes(OpKernelContext* c, int64_t bytes, Tensor* memory) {
  return c->allocate_temp(tensorflow::DT_INT8, TensorShape({bytes}), memory);
}

absl::Status AllocateOnHost(OpKernelContext* c, int64_t numbers, Tensor* memory) {
  tensorflow::AllocatorAttributes attributes;
  attributes.set_on_host(true);
  attributes.set_gpu_compatible(true);
  return c->allocate_temp(tensorflow::DT_INT32, TensorShape({numbers}), memory, attributes);
}

void WhenDone(OpKernelContext* c, std::function<void()> then) {
  auto* stream = c->op_device_context()->stream();
  auto* workers = c->device()->tensorflow_cpu_worker_threads()->workers;
  auto go_on = [stream, then = std::move(then)] {
    const auto current = stream->parent()->Activate();
    then();
  };
  // The one thread that polls the events may not be kept.
  c->device()->tensorflow_accelerator_device_info()->event_mgr->ThenExecute(
      stream, [workers, go_on = std::move(go_on)] { workers->Schedule(go_on); });
}

Scalar ScalarOf(tensorflow::DataType type) {
  return type == tensorflow::DT_HALF       ? Scalar::kHalf
         : type == tensorflow::DT_BFLOAT16 ? Scalar::kBfloat16
                                           : Scalar::kFloat;
}

Complaints::~Complaints() {
  if (word_ != nullptr) workbench_cuda_free_word(word_);
}

absl::Status Complaints::Take(const std::vector<std::string>& names) {
  const std::lock_guard<std::mutex> hold(mu_);
  if (!touched_) {
    touched_ = true;
    word_ = workbench_cuda_new_word();
  }
  if (word_ == nullptr) return absl::OkStatus();
  // A GPU writes it.
  const uint64_t found = *static_cast<volatile uint64_t*>(word_);
  if (found == 0) return absl::OkStatus();
  *static_cast<volatile uint64_t*>(word_) = 0;
  const Complaint complaint = ReadComplaint(found);
  const auto feature = static_cast<size_t>(complaint.feature);
  const std::string name = feature < names.size() ? names[feature] : "";
  return absl::InvalidArgumentError(
      absl::StrCat(name.empty() ? "" : absl::StrCat("feature '", name, "': "), Text(complaint)));
}

}  // namespace workbench::cuda
