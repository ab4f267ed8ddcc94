#ifndef WORKBENCH_CUDA_DEVICE_SCALARS_H_
#define WORKBENCH_CUDA_DEVICE_SCALARS_H_

// The 16-bit floats of tables, as bits, and float32 of each and back, rounded to nearest even.

#include <cstdint>
#include <cstring>

#include "cuda/device/portable.h"
#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace workbench::cuda {

struct Half {
  uint16_t bits;
};

struct Bfloat16 {
  uint16_t bits;
};

WORKBENCH_DEVICE float ToFloat(float value) { return value; }

#ifdef __CUDACC__

WORKBENCH_DEVICE float ToFloat(Half value) { return __half2float(__ushort_as_half(value.bits)); }

WORKBENCH_DEVICE float ToFloat(Bfloat16 value) {
  return __bfloat162float(__ushort_as_bfloat16(value.bits));
}

WORKBENCH_DEVICE void Set(float value, Half* to) { to->bits = __half_as_ushort(__float2half_rn(value)); }

WORKBENCH_DEVICE void Set(float value, Bfloat16* to) {
  to->bits = __bfloat16_as_ushort(__float2bfloat16_rn(value));
}

#else

inline uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline float ToFloat(Half value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000) << 16;
  const uint32_t rest = static_cast<uint32_t>(value.bits & 0x7fff) << 13;
  // Exponents of infinities and NaNs stay at the top; a product normalizes small ones.
  if (rest >= 0x0f800000) return FloatOf(sign | 0x70000000 | rest);
  return FloatOf(sign | BitsOf(FloatOf(rest) * FloatOf(0x77800000)));
}

inline float ToFloat(Bfloat16 value) { return FloatOf(static_cast<uint32_t>(value.bits) << 16); }

inline void Set(float value, Half* to) {
  const uint32_t sign = BitsOf(value) & 0x80000000;
  const uint32_t rest = BitsOf(value) & 0x7fffffff;
  uint32_t bits;
  if (rest > 0x7f800000) {
    bits = 0x7e00;
  } else if (rest >= 0x477ff000) {
    bits = 0x7c00;
  } else if (rest < 0x38800000) {
    // Below the normal ones: adding 0.5 shifts what is left of the number to its place.
    bits = BitsOf(FloatOf(rest) + 0.5f) - BitsOf(0.5f);
  } else {
    bits = (rest - 0x38000000 + 0xfff + (rest >> 13 & 1)) >> 13;
  }
  to->bits = static_cast<uint16_t>(sign >> 16 | bits);
}

inline void Set(float value, Bfloat16* to) {
  const uint32_t bits = BitsOf(value);
  const bool no_number = (bits & 0x7fffffff) > 0x7f800000;
  to->bits = no_number ? 0x7fc0 : static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif

WORKBENCH_DEVICE void Set(float value, float* to) { *to = value; }

// Numbers divided by one from 1 to 2¹², each rounded once.
template <int kCount>
struct Quotients {
  float at[kCount];

  WORKBENCH_DEVICE Quotients(const float* of, float divisor) {
#ifdef __CUDACC__
    // As a division does it where neither number is very small nor very large, but for all with one
    // reciprocal: its error is known and taken off, as is that of the quotient.
    float reciprocal;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(divisor));
    reciprocal = __fmaf_rn(reciprocal, __fmaf_rn(-divisor, reciprocal, 1.0f), reciprocal);
    bool usual = true;
    WORKBENCH_UNROLL
    for (int i = 0; i < kCount; ++i) {
      usual = usual && fabsf(of[i]) > 0x1p-96f && fabsf(of[i]) < 0x1p96f;
      const float quotient = __fmul_rn(of[i], reciprocal);
      at[i] = __fmaf_rn(__fmaf_rn(-divisor, quotient, of[i]), reciprocal, quotient);
    }
    if (usual) return;
#endif
    WORKBENCH_UNROLL
    for (int i = 0; i < kCount; ++i) at[i] = of[i] / divisor;
  }
};

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_DEVICE_SCALARS_H_
