// Kernels of the ops that make one tensor of several, see packing_ops.cc.

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "registration/guarded_kernel.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "transfers/packing.h"

namespace workbench {
namespace {

using tensorflow::DataType;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

Elements ElementsOf(DataType type) {
  return {tensorflow::DataTypeSize(type),
          type == tensorflow::DT_INT32 || type == tensorflow::DT_INT64};
}

// Reads the attribute T, whose types must be such as can be copied.
absl::Status ReadTypes(OpKernelConstruction* c, std::vector<DataType>* types) {
  TF_RETURN_IF_ERROR(c->GetAttr("T", types));
  for (DataType type : *types) {
    if (!tensorflow::DataTypeCanUseMemcpy(type) || tensorflow::DataTypeSize(type) == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "T has ", tensorflow::DataTypeString(type), "; expected types whose elements are bytes"));
    }
  }
  return absl::OkStatus();
}

class PackOp : public OpKernel {
 public:
  explicit PackOp(OpKernelConstruction* c) : OpKernel(c) { OP_REQUIRES_OK(c, ReadTypes(c, &types_)); }

  void Compute(OpKernelContext* c) override {
    Packing packing;
    for (int i = 0; i < c->num_inputs(); ++i) {
      const Tensor& each = c->input(i);
      std::vector<int64_t> sizes;
      for (int d = 0; d < each.dims(); ++d) sizes.push_back(each.dim_size(d));
      packing.Add(each.data(), each.NumElements(), ElementsOf(types_[i]), sizes);
    }
    Tensor* out = nullptr;
    OP_REQUIRES_OK(c, c->allocate_output(0, TensorShape({packing.bytes()}), &out));
    packing.Write(reinterpret_cast<char*>(out->flat<uint8_t>().data()));
  }

 private:
  std::vector<DataType> types_;
};

class UnpackOp : public OpKernel {
 public:
  explicit UnpackOp(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, ReadTypes(c, &types_));
  }

  void Compute(OpKernelContext* c) override {
    const auto bytes = c->input(0).flat<uint8_t>();
    Unpacking unpacking(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    for (size_t i = 0; i < types_.size(); ++i) {
      TensorShape shape;
      OP_REQUIRES(c, Read(types_[i], &unpacking, &shape), CorruptTensor(i));
      Tensor* out = nullptr;
      OP_REQUIRES_OK(c, c->allocate_output(i, shape, &out));
      unpacking.ReadElements(shape.num_elements(), out->data());
    }
    OP_REQUIRES(c, unpacking.done(), CorruptTensor(types_.size()));
  }

 private:
  static bool Read(DataType type, Unpacking* unpacking, TensorShape* shape) {
    std::vector<int64_t> sizes;
    return unpacking->ReadSizes(ElementsOf(type), &sizes) &&
           TensorShape::BuildTensorShape(sizes, shape).ok() &&
           unpacking->Holds(shape->num_elements());
  }

  absl::Status CorruptTensor(size_t tensor) const {
    return absl::InvalidArgumentError(
        absl::StrCat("packed is not what WorkbenchPackTensors makes of ", types_.size(),
                     " tensors of these types: it is wrong from tensor ", tensor, " on"));
  }

  std::vector<DataType> types_;
};

REGISTER_GUARDED_KERNEL(Name("WorkbenchPackTensors").Device(tensorflow::DEVICE_CPU), PackOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchUnpackTensors").Device(tensorflow::DEVICE_CPU), UnpackOp);

}  // namespace
}  // namespace workbench
