#ifndef WORKBENCH_TEST_CUDA_HOST_DEVICE_H_
#define WORKBENCH_TEST_CUDA_HOST_DEVICE_H_

// Runs bodies of kernels on the host: groups one after the other, of each group the lanes one after
// the other between sums. cuda/device/cuda_device.h is its like for a GPU.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "cuda/device/portable.h"

namespace workbench::cuda {

class HostDevice {
 public:
  template <typename Body>
  void Run(int64_t count, int lanes, const Body& body) {
    if constexpr (kIsTogether<Body>) {
      for (int64_t number = 0; number < count; ++number) body(GroupTogether(lanes), number, true);
      if (count > 0) body(GroupTogether(lanes), count - 1, false);
    } else {
      for (int64_t number = 0; number < count; ++number) body(Group(lanes), number);
    }
  }

  // With none, groups have as many examples as they can; with very many, one each.
  int64_t warps = 0;
  int64_t Warps() const { return warps; }

  void Fill(int byte, int64_t bytes, void* to) {
    if (bytes > 0) std::memset(to, byte, bytes);
  }

  // Room that is used, so that the sanitizer sees whether it is there.
  static int64_t SortBytes(int64_t count) { return count * 4 + 1; }
  static int64_t SumBytes(int64_t count) { return count + 1; }

  void Sort(const uint64_t* keys, const int32_t* values, int64_t count, int bits, void* scratch,
            int64_t scratch_bytes, uint64_t* sorted_keys, int32_t* sorted_values) {
    std::memset(scratch, 0x5a, scratch_bytes);
    const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    std::vector<int64_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return (keys[a] & mask) < (keys[b] & mask);
    });
    for (int64_t i = 0; i < count; ++i) {
      sorted_keys[i] = keys[order[i]];
      sorted_values[i] = values[order[i]];
    }
  }

  void Sum(const int32_t* values, int64_t count, void* scratch, int64_t scratch_bytes,
           int32_t* sums) {
    std::memset(scratch, 0x5a, scratch_bytes);
    std::partial_sum(values, values + count, sums);
  }
};

}  // namespace workbench::cuda

#endif  // WORKBENCH_TEST_CUDA_HOST_DEVICE_H_
