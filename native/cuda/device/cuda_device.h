#ifndef WORKBENCH_CUDA_DEVICE_CUDA_DEVICE_H_
#define WORKBENCH_CUDA_DEVICE_CUDA_DEVICE_H_

// Runs bodies of kernels on a stream of a GPU. Only .cu files include this; test/cuda/host_device.h
// is its like for the host.

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/device/portable.h"

namespace workbench::cuda {

// Blocks on a multiprocessor at once: 16 leave a thread 64 registers. Measured on an H200.
constexpr int kBlocksAtOnce = 16;
// What all GPUs that this nvcc builds for take.
constexpr int kParameterBytes = 32764;

template <typename Body>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce)
    RunBody(const __grid_constant__ Body body, int64_t count, int lane_bits) {
  const int64_t number = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) >> lane_bits;
  if constexpr (kIsTogether<Body>) {
    body(GroupTogether(1 << lane_bits), number < count ? number : count - 1, number < count);
  } else if (number < count) {
    body(Group(1 << lane_bits), number);
  }
}

// Keeps the first error; the calls behind one do nothing.
class CudaDevice {
 public:
  explicit CudaDevice(void* stream) : stream_(static_cast<cudaStream_t>(stream)) {}

  cudaError_t error() const { return error_; }

  // Runs a body `count` times, each time by a group of lanes.
  template <typename Body>
  void Run(int64_t count, int lanes, const Body& body) {
    static_assert(sizeof(Body) + 16 <= kParameterBytes, "a kernel has no room for so many");
    if (count == 0 || error_ != cudaSuccess) return;
    const int64_t blocks = (count * lanes + kThreads - 1) / kThreads;
    int lane_bits = 0;
    while (1 << lane_bits < lanes) ++lane_bits;
    RunBody<<<static_cast<unsigned>(blocks), kThreads, 0, stream_>>>(body, count, lane_bits);
    error_ = cudaGetLastError();
  }

  // Warps that the GPU has at once, where they need few registers.
  static int64_t Warps();

  void Fill(int byte, int64_t bytes, void* to) {
    if (bytes == 0 || error_ != cudaSuccess) return;
    error_ = cudaMemsetAsync(to, byte, bytes, stream_);
  }

  void Copy(const void* from, int64_t bytes, void* to) {
    if (bytes == 0 || error_ != cudaSuccess) return;
    error_ = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_);
  }

  // Sorts keys by their lowest bits; equal ones keep their order.
  static int64_t SortBytes(int64_t count);
  void Sort(const uint64_t* keys, const int32_t* values, int64_t count, int bits, void* scratch,
            int64_t scratch_bytes, uint64_t* sorted_keys, int32_t* sorted_values);

  // Writes the sum of all values up to and with each.
  static int64_t SumBytes(int64_t count);
  void Sum(const int32_t* values, int64_t count, void* scratch, int64_t scratch_bytes,
           int32_t* sums);

 private:
  cudaStream_t stream_;
  cudaError_t error_ = cudaSuccess;
};

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_DEVICE_CUDA_DEVICE_H_
