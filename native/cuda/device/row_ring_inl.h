#ifndef WORKBENCH_CUDA_DEVICE_ROW_RING_INL_H_
#define WORKBENCH_CUDA_DEVICE_ROW_RING_INL_H_

// Rows on their way. At each step a lane asks for its pack of one row, and takes that of the row that
// it asked for kSlots steps before. They wait in shared memory, in slots that no other lane reads, so
// that nobody waits for a lane, and that rows on their way take no registers.

#include <cstdint>

#include "cuda/device/portable.h"

namespace workbench::cuda {

#ifdef __CUDACC__

template <typename T, int kPack, int kSlots>
class RowRing {
 public:
  WORKBENCH_DEVICE RowRing() {
    __shared__ Pack<T, kPack> slots[kSlots * kThreads];
    first_ = static_cast<uint32_t>(__cvta_generic_to_shared(slots + threadIdx.x));
  }

  // Asks for a pack of a row; where that is below 0 zeros come, and nothing is read.
  WORKBENCH_DEVICE void FindTouched(int, int32_t step, const T* from, int32_t row) {
#if __CUDA_ARCH__ >= 800
    if constexpr (kBytes == kPackBytes) {
      asm volatile(
          "{ .reg .pred none; setp.lt.s32 none, %2, 0;"
          " cp.async.cg.shared.global [%0], [%1], 16, none; }" ::"r"(SlotOf(step)),
          "l"(from), "r"(row)
          : "memory");
      return;
    } else if constexpr (kBytes == 4 || kBytes == 8) {
      asm volatile(
          "{ .reg .pred none; setp.lt.s32 none, %2, 0;"
          " cp.async.ca.shared.global [%0], [%1], %3, none; }" ::"r"(SlotOf(step)),
          "l"(from), "r"(row), "n"(kBytes)
          : "memory");
      return;
    }
#endif
    *Slot(step) = row >= 0 ? Load<T, kPack>(from) : Pack<T, kPack>{};
  }

  // Ends a step, in which all, some or no lanes asked.
  WORKBENCH_DEVICE void EndStep() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
  }

  // Waits until what was asked for in all but the last kLater steps has come.
  template <int kLater>
  WORKBENCH_DEVICE void Wait() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(kLater) : "memory");
#endif
  }

  WORKBENCH_DEVICE Pack<T, kPack> Take(int, int32_t step) const { return *Slot(step); }

 private:
  static constexpr int kBytes = static_cast<int>(sizeof(T)) * kPack;
  static_assert((kSlots & (kSlots - 1)) == 0);

  WORKBENCH_DEVICE uint32_t SlotOf(int32_t step) const {
    return first_ + (step & (kSlots - 1)) * (kThreads * kBytes);
  }
  WORKBENCH_DEVICE Pack<T, kPack>* Slot(int32_t step) const {
    return static_cast<Pack<T, kPack>*>(__cvta_shared_to_generic(SlotOf(step)));
  }

  uint32_t first_;
};

#else

template <typename T, int kPack, int kSlots>
class RowRing {
 public:
  void FindTouched(int lane, int32_t step, const T* from, int32_t row) {
    slots_[step % kSlots][lane] = row >= 0 ? Load<T, kPack>(from) : Pack<T, kPack>{};
  }
  void EndStep() {}
  template <int kLater>
  void Wait() {}
  Pack<T, kPack> Take(int lane, int32_t step) const { return slots_[step % kSlots][lane]; }

 private:
  Pack<T, kPack> slots_[kSlots][kWarp];
};

#endif

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_DEVICE_ROW_RING_INL_H_
