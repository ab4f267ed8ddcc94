#ifndef WORKBENCH_CUDA_OPS_DEVICE_CONTEXT_H_
#define WORKBENCH_CUDA_OPS_DEVICE_CONTEXT_H_

// What all kernels for a GPU need of TensorFlow: its stream, memory, and what to do when the GPU has
// got somewhere. No CUDA header: calls.h is the door.

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "cuda/calls.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace workbench::cuda {

// The CUDA stream that a kernel's work goes to.
void* StreamOf(tensorflow::OpKernelContext* c);

// The error of a function of calls.h; `what` it was to do.
absl::Status CudaStatus(int error, const char* what);

// Memory of the GPU, or of the host where the GPU can write to it.
absl::Status AllocateBytes(tensorflow::OpKernelContext* c, int64_t bytes,
                           tensorflow::Tensor* memory);
absl::Status AllocateOnHost(tensorflow::OpKernelContext* c, int64_t numbers,
                            tensorflow::Tensor* memory);

// Calls `then`, on a thread of the pool with the GPU as its current one, when all work that the
// stream has by now is done. No thread waits for that.
void WhenDone(tensorflow::OpKernelContext* c, std::function<void()> then);

// The type of tables, of attribute T.
Scalar ScalarOf(tensorflow::DataType type);

// The complaints of an op's kernels, see complaint.h.
class Complaints {
 public:
  Complaints() = default;
  ~Complaints();
  Complaints(const Complaints&) = delete;
  Complaints& operator=(const Complaints&) = delete;

  // Of an earlier step; forgets it. `names` are the features'.
  absl::Status Take(const std::vector<std::string>& names);

  // Where kernels note the next one.
  uint64_t* word() const { return word_; }

 private:
  std::mutex mu_;
  bool touched_ = false;
  uint64_t* word_ = nullptr;
};

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_OPS_DEVICE_CONTEXT_H_
