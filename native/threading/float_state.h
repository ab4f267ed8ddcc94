#ifndef WORKBENCH_THREADING_FLOAT_STATE_H_
#define WORKBENCH_THREADING_FLOAT_STATE_H_

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace workbench {

// While one lives, its thread computes as the threads of TensorFlow's pools do: it takes denormal
// numbers for zero, gives zero instead of them, and rounds to nearest.
//
// A thread of Python or of the operating system does not begin so. Without this the result of a
// kernel would depend on the thread that runs it.
class TensorFlowFloatState {
 public:
  TensorFlowFloatState() : before_(Get()) { Change(kFlush); }
  ~TensorFlowFloatState() { Change(before_); }
  TensorFlowFloatState(const TensorFlowFloatState&) = delete;
  TensorFlowFloatState& operator=(const TensorFlowFloatState&) = delete;

 private:
#if defined(__x86_64__)
  // MXCSR: flush to zero, denormals are zero; two bits of rounding, of which none is to nearest.
  static constexpr uint64_t kFlush = 1 << 15 | 1 << 6;
  static constexpr uint64_t kRounding = 3 << 13;
  static uint64_t Get() { return _mm_getcsr(); }
  static void Set(uint64_t state) { _mm_setcsr(static_cast<unsigned>(state)); }
#elif defined(__aarch64__)
  // FPCR likewise.
  static constexpr uint64_t kFlush = 1 << 24;
  static constexpr uint64_t kRounding = 3 << 22;
  static uint64_t Get() {
    uint64_t state;
    asm volatile("mrs %0, fpcr" : "=r"(state));
    return state;
  }
  static void Set(uint64_t state) { asm volatile("msr fpcr, %0" : : "r"(state)); }
#else
  static constexpr uint64_t kFlush = 0;
  static constexpr uint64_t kRounding = 0;
  static uint64_t Get() { return 0; }
  static void Set(uint64_t) {}
#endif

  // Leaves all other bits: they note what happened.
  static void Change(uint64_t to) {
    constexpr uint64_t kOurs = kFlush | kRounding;
    const uint64_t now = Get();
    if (((now ^ to) & kOurs) != 0) Set((now & ~kOurs) | (to & kOurs));
  }

  const uint64_t before_;
};

}  // namespace workbench

#endif  // WORKBENCH_THREADING_FLOAT_STATE_H_
