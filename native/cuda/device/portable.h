#ifndef WORKBENCH_CUDA_DEVICE_PORTABLE_H_
#define WORKBENCH_CUDA_DEVICE_PORTABLE_H_

// What bodies of kernels are written in. nvcc compiles them for a GPU; any other compiler for the
// host, where tests and sanitizers reach them.
//
// A group of 1, 2, 4 … 32 lanes of one warp does one piece of work, e.g. a row. What is outside of
// Each is the same in all lanes; Each runs its function in every lane, on the host in one after the
// other; Sum adds a value of each lane, Of tells all that of one, and Bits all of a condition. So a
// lane reads what another one wrote only through these.

#include <cstdint>
#include <cstring>
#include <type_traits>

#ifdef __CUDACC__
#define WORKBENCH_DEVICE __device__ __forceinline__
#define WORKBENCH_UNROLL _Pragma("unroll")
#define WORKBENCH_NO_UNROLL _Pragma("unroll 1")
#else
#define WORKBENCH_DEVICE inline
#define WORKBENCH_UNROLL
#define WORKBENCH_NO_UNROLL
#endif

namespace workbench::cuda {

constexpr int kWarp = 32;
// Of a block: small ones make room for the next as soon as their longest piece of work is done. Measured
// on an H200.
constexpr int kThreads = 64;
constexpr int kPackBytes = 16;  // the widest load of a lane

#ifdef __CUDACC__

template <typename V>
class PerLane {
 public:
  WORKBENCH_DEVICE V& operator[](int) { return value_; }
  WORKBENCH_DEVICE const V& operator[](int) const { return value_; }

 private:
  V value_ = {};
};

// Of a warp's groups each runs on its own, or all take every step together: then no lane waits until
// another group has gone its own way, but all must come to each of the calls below.
template <bool kTogether>
class GroupOf {
 public:
  explicit WORKBENCH_DEVICE GroupOf(int lanes)
      : lanes_(lanes), first_(threadIdx.x & (kWarp - 1) & ~(lanes - 1)) {}

  WORKBENCH_DEVICE int lanes() const { return lanes_; }

  template <typename Function>
  WORKBENCH_DEVICE void Each(const Function& function) const {
    function(static_cast<int>(threadIdx.x) & (lanes_ - 1));
  }

  template <typename V>
  WORKBENCH_DEVICE V Sum(const PerLane<V>& of) const {
    V sum = of[0];
    for (int other = lanes_ / 2; other > 0; other /= 2) sum += __shfl_xor_sync(Mask(), sum, other);
    return sum;
  }

  // The lane is counted from 0 again behind the last one.
  template <typename V>
  WORKBENCH_DEVICE V Of(const PerLane<V>& of, int lane) const {
    return __shfl_sync(Mask(), of[0], lane, lanes_);
  }

  WORKBENCH_DEVICE uint32_t Bits(const PerLane<bool>& of) const {
    return (__ballot_sync(Mask(), of[0]) & Own()) >> first_;
  }

  // Whether it is so in any group of the warp.
  WORKBENCH_DEVICE bool InAny(bool is) const {
    static_assert(kTogether);
    return __any_sync(~0u, is);
  }

  // The least, and the most, that a group of the warp has.
  WORKBENCH_DEVICE int32_t LeastOfAll(int32_t of) const {
    static_assert(kTogether);
#if __CUDA_ARCH__ >= 800
    return __reduce_min_sync(~0u, of);
#else
    for (int other = kWarp / 2; other >= lanes_; other /= 2) {
      of = min(of, __shfl_xor_sync(~0u, of, other));
    }
    return of;
#endif
  }
  WORKBENCH_DEVICE int32_t MostOfAll(int32_t of) const { return -LeastOfAll(-of); }

 private:
  WORKBENCH_DEVICE unsigned Own() const {
    return (lanes_ == kWarp ? ~0u : (1u << lanes_) - 1) << first_;
  }
  WORKBENCH_DEVICE unsigned Mask() const { return kTogether ? ~0u : Own(); }

  int lanes_;
  unsigned first_;
};

#else

template <typename V>
class PerLane {
 public:
  V& operator[](int lane) { return values_[lane]; }
  const V& operator[](int lane) const { return values_[lane]; }

 private:
  V values_[kWarp] = {};
};

// A group is a warp of its own here, so that together is alone.
template <bool kTogether>
class GroupOf {
 public:
  explicit GroupOf(int lanes) : lanes_(lanes) {}

  int lanes() const { return lanes_; }

  template <typename Function>
  void Each(const Function& function) const {
    for (int lane = 0; lane < lanes_; ++lane) function(lane);
  }

  // Adds in the order of a GPU's lanes, so that the bits are the same.
  template <typename V>
  V Sum(const PerLane<V>& of) const {
    PerLane<V> sums = of;
    for (int other = lanes_ / 2; other > 0; other /= 2) {
      for (int lane = 0; lane < other; ++lane) sums[lane] += sums[lane + other];
    }
    return sums[0];
  }

  template <typename V>
  V Of(const PerLane<V>& of, int lane) const {
    return of[lane & (lanes_ - 1)];
  }

  uint32_t Bits(const PerLane<bool>& of) const {
    uint32_t bits = 0;
    for (int lane = 0; lane < lanes_; ++lane) bits |= static_cast<uint32_t>(of[lane]) << lane;
    return bits;
  }

  bool InAny(bool is) const { return is; }
  int32_t LeastOfAll(int32_t of) const { return of; }
  int32_t MostOfAll(int32_t of) const { return of; }

 private:
  int lanes_;
};

#endif

using Group = GroupOf<false>;
using GroupTogether = GroupOf<true>;

// Whether a body is called for all groups of a warp together, as body(group, number, there), also
// where some of them have no number: those have the last one, and are not there.
template <typename Body>
constexpr bool kIsTogether =
    std::is_invocable_v<const Body&, const GroupTogether&, int64_t, bool>;

WORKBENCH_DEVICE int CountBits(uint32_t bits) {
#ifdef __CUDACC__
  return __popc(bits);
#else
  return __builtin_popcount(bits);
#endif
}

// The number of zeros below the lowest 1; kWarp where there is none.
WORKBENCH_DEVICE int LowestBit(uint32_t bits) {
  if (bits == 0) return kWarp;
#ifdef __CUDACC__
  return __ffs(static_cast<int>(bits)) - 1;
#else
  return __builtin_ctz(bits);
#endif
}

// Columns that a lane loads at once: kPackBytes of them, aligned, or a single one.
template <typename T, int kPack>
struct alignas(sizeof(T) * kPack) Pack {
  T at[kPack];
};

template <typename T, int kPack>
WORKBENCH_DEVICE Pack<T, kPack> Load(const T* from) {
#ifdef __CUDACC__
  if constexpr (sizeof(Pack<T, kPack>) == kPackBytes) {
    const uint4 bits = *reinterpret_cast<const uint4*>(from);
    Pack<T, kPack> pack;
    memcpy(&pack, &bits, kPackBytes);
    return pack;
  }
#endif
  return *reinterpret_cast<const Pack<T, kPack>*>(from);
}

template <typename T, int kPack>
WORKBENCH_DEVICE void Store(const Pack<T, kPack>& pack, T* to) {
#ifdef __CUDACC__
  if constexpr (sizeof(Pack<T, kPack>) == kPackBytes) {
    uint4 bits;
    memcpy(&bits, &pack, kPackBytes);
    *reinterpret_cast<uint4*>(to) = bits;
    return;
  }
#endif
  *reinterpret_cast<Pack<T, kPack>*>(to) = pack;
}

// Row `row` behind `begin`, where rows are `row_bytes` apart.
template <typename T>
WORKBENCH_DEVICE const T* At(const T* begin, int32_t row, int32_t row_bytes) {
#ifdef __CUDACC__
  // One instruction, where the compiler takes five.
  const T* at;
  asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(at) : "r"(row), "r"(row_bytes), "l"(begin));
  return at;
#else
  return reinterpret_cast<const T*>(reinterpret_cast<const char*>(begin) +
                                    int64_t{row} * row_bytes);
#endif
}

// Columns of a pack of kPackBytes.
template <typename T>
constexpr int kWide = kPackBytes / static_cast<int>(sizeof(T));

// Whether rows that begin here, and are so many columns apart, can be read in packs.
template <typename T>
inline bool FitsPacks(const void* begin, int64_t stride) {
  return reinterpret_cast<uintptr_t>(begin) % kPackBytes == 0 && stride % kWide<T> == 0;
}

// Lanes for a row: one for each pack, as far as a warp has them.
inline int LanesFor(int64_t dim, int pack) {
  int lanes = 1;
  while (lanes < kWarp && lanes * pack < dim) lanes *= 2;
  return lanes;
}

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_DEVICE_PORTABLE_H_
