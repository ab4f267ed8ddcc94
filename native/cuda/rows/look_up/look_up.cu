// Launches of lookups, see calls.h.

#include "capi/export.h"
#include "cuda/calls.h"
#include "cuda/device/cuda_device.h"
#include "cuda/device/types_inl.h"
#include "cuda/rows/look_up/look_up_inl.h"

namespace workbench::cuda {

WORKBENCH_EXPORT int workbench_cuda_look_up(void* stream, const GroupCall* call) {
  CudaDevice device(stream);
  WithTypes(*call, [&](auto scalar, auto id) {
    LookUp<decltype(scalar), decltype(id)>(*call, &device);
  });
  return device.error();
}

}  // namespace workbench::cuda
