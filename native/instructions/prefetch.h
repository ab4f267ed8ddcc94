#ifndef WORKBENCH_INSTRUCTIONS_PREFETCH_H_
#define WORKBENCH_INSTRUCTIONS_PREFETCH_H_

#include <cstdint>

#include "instructions/clones.h"

namespace workbench {

// Bytes that a cache holds together.
constexpr int64_t kCacheLine = 64;

// Asks the memory for what will soon be read or changed.
//
// Always inlined: GCC takes a call of a function that only prefetches for one that does nothing,
// and leaves it out.
//
//   kCache: 3 for the nearest one, 2 for the one behind it.
template <int kCache>
WORKBENCH_INLINE void Prefetch(const void* from, int64_t bytes) {
  const char* at = static_cast<const char*>(from);
  for (int64_t b = 0; b < bytes; b += kCacheLine) __builtin_prefetch(at + b, 0, kCache);
}

}  // namespace workbench

#endif  // WORKBENCH_INSTRUCTIONS_PREFETCH_H_
