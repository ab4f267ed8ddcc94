// The fastest lookup that this machine's memory allows, to measure ours against: a plain loop over
// offsets with two stages of prefetch, in huge pages, compiled for the processor at hand. It checks
// nothing, fills nothing and knows one combiner, the mean.

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

#if defined(__GNUC__)
#define RESTRICT __restrict__
#endif

namespace {

constexpr int kNear = 8, kFar = 48;

template <int kDim>
void LookUp(const float* table, const int64_t* ids, const int64_t* offsets, int64_t batch,
            float* RESTRICT out) {
  const int64_t last = offsets[batch];
  for (int64_t row = 0; row < batch; ++row, out += kDim) {
    float sums[kDim] = {0};
    int64_t count = 0;
    for (int64_t i = offsets[row]; i < offsets[row + 1]; ++i) {
      if (i + kFar < last && ids[i + kFar] >= 0) {
        const float* far = table + ids[i + kFar] * kDim;
        for (int c = 0; c < kDim; c += 16) __builtin_prefetch(far + c, 0, 2);
      }
      if (i + kNear < last && ids[i + kNear] >= 0) {
        const float* near = table + ids[i + kNear] * kDim;
        for (int c = 0; c < kDim; c += 16) __builtin_prefetch(near + c, 0, 3);
      }
      if (ids[i] < 0) continue;
      const float* vector = table + ids[i] * kDim;
      for (int c = 0; c < kDim; ++c) sums[c] += vector[c];
      ++count;
    }
    const float scale = count == 0 ? 0.0f : 1.0f / static_cast<float>(count);
    for (int c = 0; c < kDim; ++c) out[c] = sums[c] * scale;
  }
}

}  // namespace

extern "C" {

// A table of small numbers in huge pages; null where there is no memory.
float* limit_table(int64_t rows, int64_t dim) {
  constexpr int64_t kHuge = 2 << 20;
  const int64_t bytes = (rows * dim * 4 + kHuge - 1) / kHuge * kHuge;
  void* memory = nullptr;
  if (posix_memalign(&memory, kHuge, bytes) != 0) return nullptr;
  madvise(memory, bytes, MADV_HUGEPAGE);
  float* table = static_cast<float*>(memory);
  for (int64_t i = 0; i < rows * dim; ++i) table[i] = static_cast<float>(i % 97) * 1e-3f;
  // Collapses what the kernel did not give at once; 25 since Linux 6.1.
  madvise(memory, bytes, 25);
  return table;
}

// Looks up features [begin, end), each [batch, dim], of dim 16, 32, 64 or 128.
void limit_look_up(int64_t begin, int64_t end, int64_t dim, int64_t batch,
                   const float* const* tables, const int64_t* const* ids,
                   const int64_t* const* offsets, float* const* out) {
  for (int64_t f = begin; f < end; ++f) {
    switch (dim) {
      case 16: LookUp<16>(tables[f], ids[f], offsets[f], batch, out[f]); break;
      case 32: LookUp<32>(tables[f], ids[f], offsets[f], batch, out[f]); break;
      case 64: LookUp<64>(tables[f], ids[f], offsets[f], batch, out[f]); break;
      default: LookUp<128>(tables[f], ids[f], offsets[f], batch, out[f]); break;
    }
  }
}

}  // extern "C"
