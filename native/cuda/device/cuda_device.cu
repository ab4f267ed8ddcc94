// Sorts and running sums, as CUDA's own library has them.

#include "cuda/device/cuda_device.h"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "capi/export.h"
#include "cuda/calls.h"

namespace workbench::cuda {

int64_t CudaDevice::Warps() {
  int device = 0, processors = 0, threads = 0;
  const bool known =
      cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device) == cudaSuccess &&
      cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, device) ==
          cudaSuccess;
  if (known) return int64_t{processors} * threads / kWarp;
  // The launch says what is wrong.
  cudaGetLastError();
  return INT64_MAX;
}

// Without memory they only say how much they need.
int64_t CudaDevice::SortBytes(int64_t count) {
  size_t bytes = 0;
  cub::DeviceRadixSort::SortPairs(nullptr, bytes, static_cast<const uint64_t*>(nullptr),
                                  static_cast<uint64_t*>(nullptr),
                                  static_cast<const int32_t*>(nullptr),
                                  static_cast<int32_t*>(nullptr), static_cast<int>(count));
  return static_cast<int64_t>(bytes);
}

void CudaDevice::Sort(const uint64_t* keys, const int32_t* values, int64_t count, int bits,
                      void* scratch, int64_t scratch_bytes, uint64_t* sorted_keys,
                      int32_t* sorted_values) {
  if (count == 0 || error_ != cudaSuccess) return;
  size_t bytes = scratch_bytes;
  error_ = cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, sorted_keys, values,
                                           sorted_values, static_cast<int>(count), 0, bits,
                                           stream_);
}

int64_t CudaDevice::SumBytes(int64_t count) {
  size_t bytes = 0;
  cub::DeviceScan::InclusiveSum(nullptr, bytes, static_cast<const int32_t*>(nullptr),
                                static_cast<int32_t*>(nullptr), static_cast<int>(count));
  return static_cast<int64_t>(bytes);
}

void CudaDevice::Sum(const int32_t* values, int64_t count, void* scratch, int64_t scratch_bytes,
                     int32_t* sums) {
  if (count == 0 || error_ != cudaSuccess) return;
  size_t bytes = scratch_bytes;
  error_ = cub::DeviceScan::InclusiveSum(scratch, bytes, values, sums, static_cast<int>(count),
                                         stream_);
}

WORKBENCH_EXPORT int workbench_cuda_copy(void* stream, const void* from, int64_t bytes, void* to) {
  CudaDevice device(stream);
  device.Copy(from, bytes, to);
  return device.error();
}

WORKBENCH_EXPORT uint64_t* workbench_cuda_new_word() {
  void* word = nullptr;
  // Every GPU of the process sees it at one address.
  if (cudaHostAlloc(&word, sizeof(uint64_t), cudaHostAllocMapped | cudaHostAllocPortable) !=
      cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  *static_cast<uint64_t*>(word) = 0;
  return static_cast<uint64_t*>(word);
}

WORKBENCH_EXPORT void workbench_cuda_free_word(uint64_t* word) { cudaFreeHost(word); }

WORKBENCH_EXPORT const char* workbench_cuda_error(int error) {
  return cudaGetErrorString(static_cast<cudaError_t>(error));
}

}  // namespace workbench::cuda
