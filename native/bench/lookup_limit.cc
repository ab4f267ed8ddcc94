// The fastest lookup and update that plain loops reach on this machine, to measure ours against:
// over offsets, with two stages of prefetch, in huge pages, compiled for the processor at hand. They
// check nothing, fill nothing and know one combiner, the mean. Updates sum the gradients of an id
// that a feature has several times first, found by a hash table; features that share a table are
// not summed together.

#include <sys/mman.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

#if defined(__GNUC__)
#define RESTRICT __restrict__
#endif

namespace {

constexpr int kNear = 8, kFar = 48;
constexpr int kLineFloats = 16;

// Asks the memory for a row. Inlined: a function that only prefetches does nothing, GCC thinks.
//
//   kCache: 3 for the nearest one, 2 for the one behind it.
template <int kDim, bool kWrites, int kCache>
__attribute__((always_inline)) inline void Fetch(const float* row) {
  for (int c = 0; c < kDim; c += kLineFloats) __builtin_prefetch(row + c, kWrites, kCache);
}

template <int kDim>
void LookUp(const float* table, const int64_t* ids, const int64_t* offsets, int64_t batch,
            float* RESTRICT out) {
  const int64_t last = offsets[batch];
  for (int64_t row = 0; row < batch; ++row, out += kDim) {
    float sums[kDim] = {0};
    int64_t count = 0;
    for (int64_t i = offsets[row]; i < offsets[row + 1]; ++i) {
      if (i + kFar < last && ids[i + kFar] >= 0) {
        Fetch<kDim, false, 2>(table + ids[i + kFar] * kDim);
      }
      if (i + kNear < last && ids[i + kNear] >= 0) {
        Fetch<kDim, false, 3>(table + ids[i + kNear] * kDim);
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

// What an update needs beside its table.
struct Scratch {
  std::vector<int64_t> slot_ids;     // of the hash table
  std::vector<int32_t> slot_uniques;
  std::vector<int64_t> uniques;
  std::vector<int32_t> unique_of;    // of each id
  std::vector<float> sums;           // of each unique id its gradient
};

// Gives each different id a number, in order of appearance; -1 where an id is below 0.
void Number(const int64_t* ids, int64_t count, Scratch* s) {
  int bits = 4;
  while ((int64_t{1} << bits) < 2 * count) ++bits;
  const auto place = [&](int64_t id) {
    return static_cast<uint64_t>(id) * 0x9E3779B97F4A7C15u >> (64 - bits);
  };
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  s->slot_ids.assign(mask + 1, -1);
  s->slot_uniques.resize(mask + 1);
  s->unique_of.resize(count);
  s->uniques.clear();
  for (int64_t i = 0; i < count; ++i) {
    if (i + kNear < count) __builtin_prefetch(&s->slot_ids[place(ids[i + kNear])], 1, 3);
    const int64_t id = ids[i];
    if (id < 0) {
      s->unique_of[i] = -1;
      continue;
    }
    uint64_t at = place(id);
    while (s->slot_ids[at] != id && s->slot_ids[at] >= 0) at = (at + 1) & mask;
    if (s->slot_ids[at] < 0) {
      s->slot_ids[at] = id;
      s->slot_uniques[at] = static_cast<int32_t>(s->uniques.size());
      s->uniques.push_back(id);
    }
    s->unique_of[i] = s->slot_uniques[at];
  }
}

template <int kDim>
void Update(float* RESTRICT table, float* RESTRICT squares, const int64_t* ids,
            const int64_t* offsets, int64_t batch, const float* grads, Scratch* s) {
  const int64_t count = offsets[batch];
  Number(ids, count, s);
  const int64_t unique = static_cast<int64_t>(s->uniques.size());
  s->sums.assign(unique * kDim, 0.0f);
  float* RESTRICT sums = s->sums.data();
  for (int64_t row = 0; row < batch; ++row, grads += kDim) {
    int64_t kept = 0;
    for (int64_t i = offsets[row]; i < offsets[row + 1]; ++i) kept += ids[i] >= 0;
    const float scale = kept == 0 ? 0.0f : 1.0f / static_cast<float>(kept);
    for (int64_t i = offsets[row]; i < offsets[row + 1]; ++i) {
      if (i + kNear < count && s->unique_of[i + kNear] >= 0) {
        Fetch<kDim, true, 3>(sums + int64_t{s->unique_of[i + kNear]} * kDim);
      }
      if (s->unique_of[i] < 0) continue;
      float* to = sums + int64_t{s->unique_of[i]} * kDim;
      for (int c = 0; c < kDim; ++c) to[c] += grads[c] * scale;
    }
  }
  constexpr float kRate = 0.01f;
  for (int64_t u = 0; u < unique; ++u) {
    if (u + kFar < unique) {
      Fetch<kDim, false, 2>(table + s->uniques[u + kFar] * kDim);
      if (squares != nullptr) Fetch<kDim, false, 2>(squares + s->uniques[u + kFar] * kDim);
    }
    if (u + kNear < unique) {
      Fetch<kDim, true, 3>(table + s->uniques[u + kNear] * kDim);
      if (squares != nullptr) Fetch<kDim, true, 3>(squares + s->uniques[u + kNear] * kDim);
    }
    float* RESTRICT vector = table + s->uniques[u] * kDim;
    const float* grad = sums + u * kDim;
    if (squares == nullptr) {
      for (int c = 0; c < kDim; ++c) vector[c] -= kRate * grad[c];
      continue;
    }
    float* RESTRICT square = squares + s->uniques[u] * kDim;
    for (int c = 0; c < kDim; ++c) {
      square[c] += grad[c] * grad[c];
      vector[c] -= kRate * grad[c] / std::sqrt(square[c]);
    }
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
  for (int64_t i = 0; i < rows * dim; ++i) table[i] = static_cast<float>(1 + i % 97) * 1e-3f;
  // Collapses what the kernel did not give at once; 25 since Linux 6.1.
  madvise(memory, bytes, 25);
  return table;
}

void limit_free(float* table) { std::free(table); }

// Reads all floats of an array, as fast as the memory hands them out.
float limit_read(const float* from, int64_t count) {
  constexpr int64_t kAtOnce = 64;
  float sums[kAtOnce] = {0};
  for (int64_t i = 0; i + kAtOnce <= count; i += kAtOnce) {
    Fetch<kAtOnce, false, 3>(from + i + 16 * kAtOnce);
    for (int64_t j = 0; j < kAtOnce; ++j) sums[j] += from[i + j];
  }
  float sum = 0;
  for (int64_t j = 0; j < kAtOnce; ++j) sum += sums[j];
  return sum;
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

// Updates the tables of features [begin, end) by their gradients, each [batch, dim]: by gradient
// descent, or by Adagrad where `squares` has its sums.
void limit_update(int64_t begin, int64_t end, int64_t dim, int64_t batch, float* const* tables,
                  float* const* squares, const int64_t* const* ids, const int64_t* const* offsets,
                  const float* const* grads) {
  thread_local Scratch scratch;
  for (int64_t f = begin; f < end; ++f) {
    float* const sums = squares == nullptr ? nullptr : squares[f];
    const auto update = dim == 16   ? Update<16>
                        : dim == 32 ? Update<32>
                        : dim == 64 ? Update<64>
                                    : Update<128>;
    update(tables[f], sums, ids[f], offsets[f], batch, grads[f], &scratch);
  }
}

}  // extern "C"
