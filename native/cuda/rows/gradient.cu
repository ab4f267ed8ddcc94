// Launches of gradients, see calls.h.

#include "capi/export.h"
#include "cuda/calls.h"
#include "cuda/device/cuda_device.h"
#include "cuda/device/types_inl.h"
#include "cuda/rows/touched_inl.h"
#include "cuda/rows/gradients_inl.h"
#include "cuda/rows/weighted/weight_gradients_inl.h"

namespace workbench::cuda {

WORKBENCH_EXPORT int64_t workbench_cuda_workspace(const GroupCall* call, Numbering numbering) {
  Touched touched;
  Unordered unordered;
  return TakeParts<CudaDevice>(*call, numbering, nullptr, &touched, &unordered);
}

WORKBENCH_EXPORT int workbench_cuda_ask(void* stream, const GroupCall* call, Numbering numbering,
                                        void* workspace, Touched* touched) {
  CudaDevice device(stream);
  WithTypes(*call, [&](auto scalar, auto id) {
    FindTouched<decltype(scalar), decltype(id)>(*call, numbering, workspace, touched, &device);
  });
  return device.error();
}

WORKBENCH_EXPORT int workbench_cuda_sum(void* stream, const GroupCall* call, const Touched* touched,
                                        int32_t table, int64_t begin, int64_t count, int64_t* rows,
                                        void* sums) {
  CudaDevice device(stream);
  WithScalar(call->type, [&](auto scalar) {
    SumGradients<decltype(scalar)>(*call, *touched, table, begin, count, rows, sums, &device);
  });
  return device.error();
}

WORKBENCH_EXPORT int workbench_cuda_weight_gradients(void* stream, const GroupCall* call) {
  CudaDevice device(stream);
  WithTypes(*call, [&](auto scalar, auto id) {
    WeightGradients<decltype(scalar), decltype(id)>(*call, &device);
  });
  return device.error();
}

}  // namespace workbench::cuda
