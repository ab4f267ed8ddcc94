// Launches of updates, see calls.h.

#include "cuda/rows/apply_inl.h"

#include "capi/export.h"
#include "cuda/calls.h"
#include "cuda/device/cuda_device.h"

namespace workbench::cuda {

WORKBENCH_EXPORT int workbench_cuda_apply(void* stream, const GroupCall* call, const Touched* touched,
                                          const RuleCall* rule) {
  CudaDevice device(stream);
  Apply(*call, *touched, *rule, &device);
  return device.error();
}

WORKBENCH_EXPORT int64_t workbench_cuda_rows_workspace(const RowsCall* call) {
  Unordered from;
  uint64_t* keys = nullptr;
  int32_t* who = nullptr;
  return TakeRowsParts<CudaDevice>(*call, nullptr, &from, &keys, &who);
}

WORKBENCH_EXPORT int workbench_cuda_rows_apply(void* stream, const RowsCall* call,
                                               const RuleCall* rule, void* workspace) {
  CudaDevice device(stream);
  RowsApply(*call, *rule, workspace, &device);
  return device.error();
}

}  // namespace workbench::cuda
