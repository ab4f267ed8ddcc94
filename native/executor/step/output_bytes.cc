#include "executor/step/output_bytes.h"

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace workbench {
namespace {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;

int64_t BytesOf(const Tensor& tensor) {
  if (tensor.dtype() == tensorflow::DT_STRING) {
    return tensor.NumElements() * int64_t{sizeof(tensorflow::tstring)};
  }
  return tensor.TotalBytes();
}

bool IsAnInput(const Tensor& output, OpKernelContext* context) {
  for (int i = 0; i < context->num_inputs(); ++i) {
    if (!context->has_input(i) || context->input_is_ref(i)) continue;
    if (output.SharesBufferWith(context->input(i))) return true;
  }
  return false;
}

// A step may take an item before its producer has let go of it.
bool IsAnItem(OpKernelContext* context) {
  return context->op_kernel().type_string() == "WorkbenchBufferTake";
}

}  // namespace

OutputBytes BytesOfOutputs(OpKernelContext* context) {
  OutputBytes bytes;
  for (int i = 0; i < context->num_outputs(); ++i) {
    if (tensorflow::IsRefType(context->expected_output_dtype(i))) continue;
    const Tensor* output = context->mutable_output(i);
    if (output == nullptr || !output->IsInitialized()) continue;
    if (output->RefCountIsOne()) {
      bytes.made += BytesOf(*output);
    } else if (IsAnInput(*output, context)) {
      bytes.passed += BytesOf(*output);
    } else if (IsAnItem(context)) {
      bytes.made += BytesOf(*output);
    }
  }
  return bytes;
}

}  // namespace workbench
