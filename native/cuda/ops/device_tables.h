#ifndef WORKBENCH_CUDA_OPS_DEVICE_TABLES_H_
#define WORKBENCH_CUDA_OPS_DEVICE_TABLES_H_

// Tables and slots in a GPU's memory, held while work on them is put on the stream. Locks order the
// host's threads; what is on one stream is in order of itself.

#include <memory>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/mutex.h"

namespace workbench::cuda {

class DeviceTables {
 public:
  // The first inputs, which are tensors or handles of variables, to be read.
  absl::Status HoldToRead(tensorflow::OpKernelContext* c, int count, tensorflow::DataType type);

  // The first inputs, which are ref variables or handles, to be changed in place.
  absl::Status HoldToChange(tensorflow::OpKernelContext* c, int count);

  const tensorflow::Tensor& operator[](int input) const { return tensors_[input]; }

  // Whether input `table` is [rows, dim]; dim below 0 lets any pass.
  absl::Status CheckTable(int table, int64_t dim) const;

 private:
  using Variable = tensorflow::core::RefCountPtr<tensorflow::Var>;
  // Whatever this TensorFlow's variables have.
  using Mutex = decltype(std::declval<tensorflow::Var&>().mu());

  absl::Status Find(tensorflow::OpKernelContext* c, int count);
  absl::Status CheckVariable(int input, tensorflow::DataType type) const;
  void LockInOrder(std::vector<Mutex> mutexes, bool shared);
  // Gives a variable whose value others hold too one of its own.
  static absl::Status MakeOwn(tensorflow::OpKernelContext* c, tensorflow::Var* variable);

  std::vector<Variable> variables_;
  std::vector<std::unique_ptr<tensorflow::tf_shared_lock>> shared_locks_;
  std::vector<std::unique_ptr<tensorflow::mutex_lock>> locks_;
  std::vector<tensorflow::Tensor> tensors_;
};

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_OPS_DEVICE_TABLES_H_
