// A training step of DLRM or DeepFM as a program of its own, to measure steps of frameworks against.
//
// The same batches and the same sums, in float32: lookups, dense layers with ReLU and batch
// normalization, the interaction, the loss, the gradients, and updates by Adagrad (of DeepFM's dense
// layers by Adam). There is no graph, no allocation in a step and nobody to wait for: each thread
// does its part of each piece of work and meets the others behind it. Products are blocked for the
// registers and caches of the processor at hand, by the code below. Weights and batches come from a
// file, so that losses compare step by step.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <type_traits>
#include <vector>

#include <sys/mman.h>
#include <time.h>

#define INLINE __attribute__((always_inline)) inline
#define RESTRICT __restrict__

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16, kHigh = 12;
#elif defined(__AVX__)
constexpr int kLanes = 8, kHigh = 6;
#else
constexpr int kLanes = 4, kHigh = 8;
#endif
// Vectors of a panel of the second factor.
constexpr int kVectors = 2;
constexpr int kWide = kVectors * kLanes;
// Of what is between the factors, what is multiplied at a time, and rows whose panels lie in the
// cache meanwhile.
constexpr int64_t kDeep = 256, kRows = 16 * kHigh;

typedef float Vec __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));

INLINE Vec Load(const float* from) { return *reinterpret_cast<const Vec*>(from); }
INLINE void Store(Vec value, float* to) { *reinterpret_cast<Vec*>(to) = value; }

constexpr int64_t kHugePage = 2 << 20;

// Floats that begin at a cache line, all 0; many of them lie in huge pages.
class Floats {
 public:
  explicit Floats(int64_t count = 0) { Resize(count); }
  ~Floats() { std::free(data_); }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;

  void Resize(int64_t count) {
    std::free(data_);
    const int64_t wanted = 4 * std::max<int64_t>(count, 1);
    const int64_t aligned = wanted >= kHugePage ? kHugePage : 64;
    const int64_t bytes = (wanted + aligned - 1) / aligned * aligned;
    data_ = static_cast<float*>(std::aligned_alloc(aligned, bytes));
    if (data_ == nullptr) throw std::bad_alloc();
    if (aligned == kHugePage) madvise(data_, bytes, MADV_HUGEPAGE);
    std::memset(data_, 0, bytes);
    count_ = count;
  }
  float* get() const { return data_; }
  int64_t size() const { return count_; }

 private:
  float* data_ = nullptr;
  int64_t count_ = 0;
};

// One of several threads that do the same work, each a part.
struct Part {
  int number, count;
  int64_t Begin(int64_t all) const { return all * number / count; }
  int64_t End(int64_t all) const { return all * (number + 1) / count; }
  // Likewise, of groups of so many that stay together.
  int64_t Begin(int64_t all, int64_t group) const {
    return std::min(all, Begin((all + group - 1) / group) * group);
  }
  int64_t End(int64_t all, int64_t group) const {
    return std::min(all, End((all + group - 1) / group) * group);
  }
};

// What a step consists of.
enum Kind {
  kProducts,
  kCopies,
  kNorms,
  kInteractions,
  kLookUps,
  kTableUpdates,
  kDenseUpdates,
  kOthers,
  kWaits,
  kKinds
};

// CPU seconds of the thread that calls it.
double ThreadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// What one thread did, in CPU seconds; on cache lines of its own.
struct alignas(64) Spent {
  double last = 0, of[kKinds] = {0};
};

// Threads that run one function together. They sleep between two calls and spin within one.
class Crew {
 public:
  explicit Crew(int count) : count_(count), spent_(count) {
    for (int i = 1; i < count; ++i) threads_.emplace_back([this, i] { Work(i); });
  }
  ~Crew() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
    }
    called_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  // Counts what all threads spend from here on, or does not.
  void Count(bool counts) {
    counts_ = counts;
    std::fill(spent_.begin(), spent_.end(), Spent());
  }
  double Sum(Kind kind) const {
    double sum = 0;
    for (const Spent& each : spent_) sum += each.of[kind];
    return sum;
  }

  // What the thread did since it called this last was of that kind.
  void Did(Part part, Kind kind) {
    if (!counts_) return;
    Spent& spent = spent_[part.number];
    const double now = ThreadSeconds();
    spent.of[kind] += now - spent.last;
    spent.last = now;
  }
  void Begin(Part part) {
    if (counts_) spent_[part.number].last = ThreadSeconds();
  }
  // Behind work of a kind, waits until all threads are here.
  void Meet(Part part, Kind kind) {
    Did(part, kind);
    Meet();
    Did(part, kWaits);
  }

  void Run(const std::function<void(Part)>& work) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      work_ = &work;
      ++calls_;
    }
    called_.notify_all();
    work({0, count_});
    Meet();
  }

  // Waits until all threads are here.
  void Meet() {
    const int64_t round = rounds_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) == count_ - 1) {
      arrived_.store(0, std::memory_order_relaxed);
      rounds_.store(round + 1, std::memory_order_release);
      return;
    }
    for (int spins = 0; rounds_.load(std::memory_order_acquire) == round; ++spins) {
      if (spins > 20000) std::this_thread::yield();
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  }

 private:
  void Work(int number) {
    for (int64_t seen = 0;;) {
      const std::function<void(Part)>* work;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        called_.wait(lock, [&] { return ends_ || calls_ > seen; });
        if (ends_) return;
        seen = calls_;
        work = work_;
      }
      (*work)({number, count_});
      Meet();
    }
  }

  const int count_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable called_;
  const std::function<void(Part)>* work_ = nullptr;
  int64_t calls_ = 0;
  bool ends_ = false, counts_ = false;
  std::vector<Spent> spent_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<int64_t> rounds_{0};
};

// c [rows, columns] = a [rows, inner] b [inner, columns], either factor transposed. From one stored
// row to the next there are `…_step` floats.
struct Product {
  const float* a;
  int64_t a_step;
  bool transpose_a;
  const float* b;
  int64_t b_step;
  bool transpose_b;
  float* c;
  int64_t c_step;
  int64_t rows, columns, inner;
  const float* bias = nullptr;
  bool relu = false;
};

// Sums of kR rows and kV vectors of columns stay in registers.
template <int kR, int kV>
INLINE void Tile(int64_t inner, const float* a, const float* b, Vec (&sums)[kR][kV]) {
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) sums[r][v] = Vec{};
  }
  for (int64_t k = 0; k < inner; ++k, a += kR, b += kWide) {
    Vec columns[kV];
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) columns[v] = Load(b + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kV; ++v) sums[r][v] += a[r] * columns[v];
    }
  }
}

// One tile of c, of which `columns` are wanted. `first`, `last`: of the pieces of what is between.
template <int kR, int kV>
void MultiplyTile(const Product& p, int64_t row, int64_t column, int64_t columns, int64_t inner,
                  bool first, bool last, const float* a, const float* b) {
  Vec sums[kR][kV];
  Tile<kR, kV>(inner, a, b, sums);
  for (int r = 0; r < kR; ++r) {
    float* to = p.c + (row + r) * p.c_step + column;
    alignas(64) float line[kWide];
    const bool whole = columns == kV * kLanes;
    float* at = whole ? to : line;
    if (!whole && !first) std::memcpy(line, to, 4 * columns);
    for (int v = 0; v < kV; ++v) {
      float* place = at + v * kLanes;
      Store(first ? sums[r][v] : Load(place) + sums[r][v], place);
    }
    if (last && p.bias != nullptr) {
      for (int64_t i = 0; i < columns; ++i) at[i] += p.bias[column + i];
    }
    if (last && p.relu) {
      for (int64_t i = 0; i < columns; ++i) at[i] = at[i] > 0 ? at[i] : 0.0f;
    }
    if (!whole) std::memcpy(to, line, 4 * columns);
  }
}

using TileFunction = void (*)(const Product&, int64_t, int64_t, int64_t, int64_t, bool, bool,
                              const float*, const float*);

template <int kR>
void ListTiles(TileFunction (&tiles)[kHigh + 1][kVectors + 1]) {
  tiles[kR][1] = MultiplyTile<kR, 1>;
  tiles[kR][2] = MultiplyTile<kR, 2>;
  if constexpr (kR > 1) ListTiles<kR - 1>(tiles);
}

struct Tiles {
  TileFunction of[kHigh + 1][kVectors + 1];
  Tiles() { ListTiles<kHigh>(of); }
};
const Tiles kTiles;

int64_t Panels(int64_t columns) { return (columns + kWide - 1) / kWide; }

// How many floats `packed` of Multiply has.
int64_t PackedSize(int64_t columns, int64_t inner) { return Panels(columns) * kWide * inner; }

constexpr int64_t kTurned = 8;

template <int kR>
void TurnRows(const float* from, int64_t step, int64_t inner, float* RESTRICT to, int64_t wide) {
  for (int64_t k = 0; k < inner; ++k) {
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) to[k * wide + r] = from[r * step + k];
  }
}

// Copies `rows` rows of `inner` numbers to as many columns of rows that are `wide`.
void Turn(const float* from, int64_t step, int64_t rows, int64_t inner, float* to, int64_t wide) {
  if (rows == kHigh) return TurnRows<kHigh>(from, step, inner, to, wide);
  if (rows == kHigh - 1) return TurnRows<kHigh - 1>(from, step, inner, to, wide);
  if (rows == kTurned) return TurnRows<kTurned>(from, step, inner, to, wide);
  for (int64_t r = 0; r < rows; ++r) TurnRows<1>(from + r * step, step, inner, to + r, wide);
}

// Copies `columns` columns of `inner` rows, most often kC.
template <int kC>
void Copy(const float* from, int64_t step, int64_t columns, int64_t inner, float* to,
          int64_t wide) {
  if (columns == kC) {
    for (int64_t k = 0; k < inner; ++k) std::memcpy(to + k * wide, from + k * step, 4 * kC);
  } else {
    for (int64_t k = 0; k < inner; ++k) std::memcpy(to + k * wide, from + k * step, 4 * columns);
  }
}

// Copies panels [begin, end) of b into the order in which tiles read them.
void PackB(const Product& p, int64_t begin, int64_t end, float* packed) {
  for (int64_t deep = 0; deep < p.inner; deep += kDeep) {
    const int64_t inner = std::min(kDeep, p.inner - deep);
    for (int64_t panel = begin; panel < end; ++panel) {
      float* to = packed + Panels(p.columns) * kWide * deep + panel * kWide * inner;
      const int64_t column = panel * kWide;
      const int64_t columns = std::min<int64_t>(kWide, p.columns - column);
      if (columns < kWide) std::fill_n(to, inner * kWide, 0.0f);
      if (!p.transpose_b) {
        Copy<kWide>(p.b + deep * p.b_step + column, p.b_step, columns, inner, to, kWide);
        continue;
      }
      // Few rows at a time: more would not lie in the first cache together.
      for (int64_t i = 0; i < columns; i += kTurned) {
        Turn(p.b + (column + i) * p.b_step + deep, p.b_step, std::min(kTurned, columns - i), inner,
             to + i, kWide);
      }
    }
  }
}

// Copies `rows` rows of a from `row` on.
void PackA(const Product& p, int64_t row, int64_t rows, int64_t deep, int64_t inner, float* to) {
  if (p.transpose_a) {
    return Copy<kHigh>(p.a + deep * p.a_step + row, p.a_step, rows, inner, to, rows);
  }
  Turn(p.a + row * p.a_step + deep, p.a_step, rows, inner, to, rows);
}

// Rows [begin, end) of c and panels [panel, panels), by what PackB made of all of these. Behind each
// block of rows it calls `made` with the first one, how many, and the columns.
template <typename Made>
void MultiplyPart(const Product& p, int64_t begin, int64_t end, int64_t panel, int64_t panels,
                  const float* packed, float* own, const Made& made) {
  for (int64_t block = begin; block < end; block += kRows) {
    const int64_t high = std::min(kRows, end - block);
    // Of about the same height, so that the last one is not a thin one.
    const int64_t bands = (high + kHigh - 1) / kHigh;
    for (int64_t deep = 0; deep < p.inner; deep += kDeep) {
      const int64_t inner = std::min(kDeep, p.inner - deep);
      for (int64_t band = 0; band < bands; ++band) {
        const int64_t first = high * band / bands, last = high * (band + 1) / bands;
        PackA(p, block + first, last - first, deep, inner, own + first * inner);
      }
      for (int64_t at = panel; at < panels; ++at) {
        const float* b = packed + Panels(p.columns) * kWide * deep + at * kWide * inner;
        const int64_t columns = std::min<int64_t>(kWide, p.columns - at * kWide);
        const int64_t vectors = (columns + kLanes - 1) / kLanes;
        for (int64_t band = 0; band < bands; ++band) {
          const int64_t first = high * band / bands, last = high * (band + 1) / bands;
          kTiles.of[last - first][vectors](p, block + first, at * kWide, columns, inner, deep == 0,
                                           deep + inner == p.inner, own + first * inner, b);
        }
      }
    }
    made(block, high, panel * kWide, std::min(panels * kWide, p.columns));
  }
}

// What the threads share of products, and what each has alone.
struct Scratch {
  Floats packed;
  std::vector<std::unique_ptr<Floats>> own;

  Scratch(int threads, int64_t most) : packed(most) {
    for (int i = 0; i < threads; ++i) own.push_back(std::make_unique<Floats>(kRows * kDeep));
  }
};

// All threads call it. They meet once it has copied, and the caller lets them meet behind it.
template <typename Made>
void Multiply(const Product& p, Part part, Crew* crew, Scratch* scratch, const Made& made) {
  const int64_t panels = Panels(p.columns);
  PackB(p, part.Begin(panels), part.End(panels), scratch->packed.get());
  crew->Meet(part, kCopies);
  float* own = scratch->own[part.number]->get();
  if (p.rows >= 2 * kHigh * part.count || p.rows >= p.columns) {
    MultiplyPart(p, part.Begin(p.rows), part.End(p.rows), 0, panels, scratch->packed.get(), own,
                 made);
  } else {
    MultiplyPart(p, 0, p.rows, part.Begin(panels), part.End(panels), scratch->packed.get(), own,
                 made);
  }
}

constexpr auto kNothingMore = [](int64_t, int64_t, int64_t, int64_t) {};

// A matrix as part of a wider one.
struct Matrix {
  float* at;
  int64_t step;
  float* Row(int64_t row) const { return at + row * step; }
};

// Dense, ReLU and batch normalization by the batch's own moments.
struct Layer {
  int64_t inputs, units;
  // Weights and their gradients, in this order: kernel, bias, gamma, beta.
  int64_t offset;
  Matrix in, out, in_gradient, out_gradient;
  Floats active, active_gradient, mean, scale;

  int64_t weights() const { return units * (inputs + 3); }
};

constexpr float kEpsilon = 1e-3f;
// Vectors of columns that are worked on at a time.
constexpr int kStripe = 4;
#define FOR_VECTORS _Pragma("GCC unroll 4") for (int v = 0; v < kV; ++v)

// Sums over a thread's rows of a batch, for each column; room for the widest layer.
struct Sums {
  explicit Sums(int64_t most) : one(most), other(most), bias(most), factor(most), of_x(most),
                                rest(most) {}
  void Clear(int64_t units) {
    std::fill_n(one.get(), units, 0.0f);
    std::fill_n(other.get(), units, 0.0f);
  }

  Floats one, other, bias;
  // What a row is worked on by.
  Floats factor, of_x, rest;
};
using AllSums = std::vector<std::unique_ptr<Sums>>;

// Calls `each` with as many vectors of columns as it can take at a time, and the first one's.
template <typename Each>
void InStripes(int64_t begin, int64_t end, const Each& each) {
  while (begin < end) {
    if (end - begin >= kStripe * kLanes) {
      each(std::integral_constant<int, kStripe>(), begin);
      begin += kStripe * kLanes;
    } else {
      each(std::integral_constant<int, 1>(), begin);
      begin += kLanes;
    }
  }
}

// Adds rows of x, less a shift, and their squares.
template <int kV>
void AddMoments(const float* x, int64_t step, int64_t rows, const float* shift, float* sums,
                float* squares) {
  Vec off[kV], one[kV], other[kV];
  FOR_VECTORS {
    off[v] = Load(shift + v * kLanes);
    one[v] = Load(sums + v * kLanes);
    other[v] = Load(squares + v * kLanes);
  }
  for (int64_t row = 0; row < rows; ++row) {
    FOR_VECTORS {
      const Vec value = Load(x + row * step + v * kLanes) - off[v];
      one[v] += value;
      other[v] += value * value;
    }
  }
  FOR_VECTORS {
    Store(one[v], sums + v * kLanes);
    Store(other[v], squares + v * kLanes);
  }
}

// Adds rows of gradients, and their products with x less its mean.
template <int kV>
void AddProducts(const float* gradient, int64_t gradient_step, const float* x, int64_t step,
                 int64_t rows, const float* mean, float* sums, float* products) {
  Vec off[kV], one[kV], other[kV];
  FOR_VECTORS {
    off[v] = Load(mean + v * kLanes);
    one[v] = Load(sums + v * kLanes);
    other[v] = Load(products + v * kLanes);
  }
  for (int64_t row = 0; row < rows; ++row) {
    FOR_VECTORS {
      const Vec from = Load(gradient + row * gradient_step + v * kLanes);
      one[v] += from;
      other[v] += from * (Load(x + row * step + v * kLanes) - off[v]);
    }
  }
  FOR_VECTORS {
    Store(one[v], sums + v * kLanes);
    Store(other[v], products + v * kLanes);
  }
}

#undef FOR_VECTORS

// Of a block of the layer's active values. The mean of the step before is close to this one's: the
// squares of what is off it lose nothing.
void BlockMoments(const Layer& layer, int64_t row, int64_t rows, int64_t begin, int64_t end,
                  Sums* sums) {
  InStripes(begin, end, [&](auto vectors, int64_t at) {
    AddMoments<vectors>(layer.active.get() + row * layer.units + at, layer.units, rows,
                        layer.mean.get() + at, sums->one.get() + at, sums->other.get() + at);
  });
}

// Of a block of the gradients of what the layer puts out.
void BlockProducts(const Layer& layer, int64_t row, int64_t rows, int64_t begin, int64_t end,
                   Sums* sums) {
  InStripes(begin, end, [&](auto vectors, int64_t at) {
    AddProducts<vectors>(layer.out_gradient.Row(row) + at, layer.out_gradient.step,
                         layer.active.get() + row * layer.units + at, layer.units, rows,
                         layer.mean.get() + at, sums->one.get() + at, sums->other.get() + at);
  });
}

Vec SumOf(const AllSums& all, Floats Sums::*which, int64_t column) {
  Vec sum = {};
  for (auto& each : all) sum += Load(((*each).*which).get() + column);
  return sum;
}

// Mean and inverse deviation of columns [begin, end), from what BlockMoments made of all rows.
void Moments(Layer* layer, int64_t batch, int64_t begin, int64_t end, const AllSums& all) {
  const float part = 1.0f / static_cast<float>(batch);
  for (int64_t at = begin; at < end; at += kLanes) {
    const Vec off = SumOf(all, &Sums::one, at) * part;
    const Vec variance = SumOf(all, &Sums::other, at) * part - off * off;
    Vec inverse;
    for (int i = 0; i < kLanes; ++i) {
      inverse[i] = 1.0f / std::sqrt(std::max(variance[i], 0.0f) + kEpsilon);
    }
    Store(Load(layer->mean.get() + at) + off, layer->mean.get() + at);
    Store(inverse, layer->scale.get() + at);
  }
}

// Normalizes rows [begin, end).
void NormForward(const Layer& layer, const float* weights, int64_t begin, int64_t end,
                 Sums* sums) {
  const int64_t units = layer.units;
  const float *gamma = weights + layer.offset + units * (layer.inputs + 1), *beta = gamma + units;
  float *factor = sums->factor.get(), *rest = sums->rest.get();
  for (int64_t i = 0; i < units; ++i) {
    factor[i] = layer.scale.get()[i] * gamma[i];
    rest[i] = beta[i] - layer.mean.get()[i] * factor[i];
  }
  for (int64_t row = begin; row < end; ++row) {
    const float* x = layer.active.get() + row * units;
    float* out = layer.out.Row(row);
    for (int64_t i = 0; i < units; i += kLanes) {
      Store(Load(x + i) * Load(factor + i) + Load(rest + i), out + i);
    }
  }
}

// Gradients of rows [begin, end) of what was put in before the ReLU, and of gamma and beta of
// columns [first, last), from what BlockProducts made of all rows.
void NormBackward(Layer* layer, const float* weights, float* gradients, int64_t batch,
                  int64_t begin, int64_t end, int64_t first, int64_t last, const AllSums& all,
                  Sums* own) {
  const int64_t units = layer->units, bias = layer->offset + units * layer->inputs;
  const float* gamma = weights + bias + units;
  float *factor = own->factor.get(), *of_x = own->of_x.get(), *rest = own->rest.get();
  const float part = 1.0f / static_cast<float>(batch);
  for (int64_t at = 0; at < units; at += kLanes) {
    const Vec inverse = Load(layer->scale.get() + at), sums = SumOf(all, &Sums::one, at);
    const Vec products = SumOf(all, &Sums::other, at) * inverse;
    const Vec scale = Load(gamma + at) * inverse, of = -scale * inverse * products * part;
    Store(scale, factor + at);
    Store(of, of_x + at);
    Store(-scale * sums * part - of * Load(layer->mean.get() + at), rest + at);
    if (at < first || at >= last) continue;
    Store(products, gradients + bias + units + at);
    Store(sums, gradients + bias + 2 * units + at);
  }
  float* biases = own->bias.get();
  std::fill_n(biases, units, 0.0f);
  for (int64_t row = begin; row < end; ++row) {
    const float *x = layer->active.get() + row * units, *from = layer->out_gradient.Row(row);
    float* to = layer->active_gradient.get() + row * units;
    for (int64_t i = 0; i < units; i += kLanes) {
      const Vec value = Load(x + i);
      const Vec gradient = Load(from + i) * Load(factor + i) + value * Load(of_x + i) +
                           Load(rest + i);
      const Vec kept = value > 0.0f ? gradient : Vec{};
      Store(kept, to + i);
      Store(Load(biases + i) + kept, biases + i);
    }
  }
}

// Gradients of the bias, of columns [begin, end), from what NormBackward made of all rows.
void BiasGradient(const Layer& layer, float* gradients, int64_t begin, int64_t end,
                  const AllSums& all) {
  float* to = gradients + layer.offset + layer.units * layer.inputs;
  for (int64_t at = begin; at < end; at += kLanes) Store(SumOf(all, &Sums::bias, at), to + at);
}

constexpr int64_t kNumbers = 13, kTables = 26, kDim = 16;
constexpr int64_t kVectorsOfExample = kTables + 1;
constexpr int64_t kPairs = kVectorsOfExample * (kVectorsOfExample - 1) / 2;

// Vectors of an example that are worked on at a time; room for all of them, in whole registers.
constexpr int kGroup = 9, kTogether = 32;
#define FOR_GROUP _Pragma("GCC unroll 9") for (int r = 0; r < kGroup; ++r)
#define FOR_VECTORS_OF(count) \
  _Pragma("GCC unroll 8") for (int v = 0; v < (count) / kLanes; ++v)

// Products of all pairs of an example's 27 vectors, each with those before it.
void Dots(const float* RESTRICT vectors, float* RESTRICT dots) {
  float turned[kDim][kTogether] = {{0}};
  for (int64_t v = 0; v < kVectorsOfExample; ++v) {
    for (int64_t d = 0; d < kDim; ++d) turned[d][v] = vectors[v * kDim + d];
  }
  for (int64_t first = 0; first < kVectorsOfExample; first += kGroup) {
    Vec sums[kGroup][kTogether / kLanes] = {};
    for (int64_t d = 0; d < kDim; ++d) {
      FOR_GROUP {
        const float value = vectors[(first + r) * kDim + d];
        FOR_VECTORS_OF(kTogether) sums[r][v] += value * Load(turned[d] + v * kLanes);
      }
    }
    FOR_GROUP {
      std::memcpy(dots, &sums[r], 4 * (first + r));
      dots += first + r;
    }
  }
}

// Their gradients, added to `to` [27, 16].
void DotsGradient(const float* RESTRICT vectors, const float* RESTRICT gradient,
                  float* RESTRICT to) {
  // As a symmetric matrix: each vector has a gradient by each other one.
  float pairs[kVectorsOfExample][kVectorsOfExample];
  for (int64_t row = 0; row < kVectorsOfExample; ++row) {
    pairs[row][row] = 0.0f;
    for (int64_t other = 0; other < row; ++other) {
      pairs[row][other] = pairs[other][row] = *gradient++;
    }
  }
  for (int64_t first = 0; first < kVectorsOfExample; first += kGroup) {
    Vec sums[kGroup][kDim / kLanes];
    FOR_GROUP FOR_VECTORS_OF(kDim) sums[r][v] = Load(to + (first + r) * kDim + v * kLanes);
    for (int64_t other = 0; other < kVectorsOfExample; ++other) {
      FOR_GROUP {
        const float value = pairs[other][first + r];
        FOR_VECTORS_OF(kDim) sums[r][v] += value * Load(vectors + other * kDim + v * kLanes);
      }
    }
    FOR_GROUP FOR_VECTORS_OF(kDim) Store(sums[r][v], to + (first + r) * kDim + v * kLanes);
  }
}

#undef FOR_GROUP
#undef FOR_VECTORS_OF

// A table of rows [rows, dim] and its Adagrad sums, after them.
template <int kD>
void UpdateRows(float* table, float* squares, int32_t* place, const int32_t* ids, int64_t batch,
                Matrix gradients, float rate, std::vector<int32_t>* unique, float* sums) {
  unique->clear();
  for (int64_t row = 0; row < batch; ++row) {
    const int32_t id = ids[row];
    const float* from = gradients.Row(row);
    // The next rows lie on other pages.
    if (row + 8 < batch) __builtin_prefetch(gradients.Row(row + 8));
    if (place[id] < 0) {
      place[id] = static_cast<int32_t>(unique->size());
      float* to = sums + int64_t{place[id]} * kD;
      unique->push_back(id);
      for (int d = 0; d < kD; ++d) to[d] = from[d];
    } else {
      float* to = sums + int64_t{place[id]} * kD;
      for (int d = 0; d < kD; ++d) to[d] += from[d];
    }
  }
  for (size_t u = 0; u < unique->size(); ++u) {
    const int64_t id = (*unique)[u];
    if (u + 8 < unique->size()) {
      __builtin_prefetch(table + int64_t{(*unique)[u + 8]} * kD, 1);
      __builtin_prefetch(squares + int64_t{(*unique)[u + 8]} * kD, 1);
    }
    place[id] = -1;
    for (int d = 0; d < kD; ++d) {
      const float g = sums[u * kD + d];
      const float square = squares[id * kD + d] += g * g;
      table[id * kD + d] -= rate * g / std::sqrt(square);
    }
  }
}

struct Header {
  int32_t model, batch, batches, buckets;
  float rate, table_rate;
};
enum Model : int32_t { kDlrm = 0, kDeepFm = 1 };

class Program {
 public:
  Program(std::FILE* file, int threads) : crew_(threads) {
    Read(file, &header_, sizeof(header_));
    const bool is_dlrm = header_.model == kDlrm;
    const int64_t batch = header_.batch;
    if (is_dlrm) {
      Stack({kNumbers, 512, 256, 64, kDim}, &first_);
      Stack({kDim + kPairs, 512, 256}, &second_);
    } else {
      Stack({kNumbers + kTables * kDim, 1024, 256, 32}, &first_);
      Stack({1 + kDim + 32, 128, 64}, &second_);
    }
    last_units_ = second_.back()->units;
    logit_at_ = dense_;
    dense_ += last_units_ + 1;
    linear_at_ = dense_;
    if (!is_dlrm) dense_ += kNumbers + 1;
    weights_.Resize(dense_);
    gradients_.Resize(dense_);
    slots_.Resize(2 * dense_);
    if (is_dlrm) std::fill_n(slots_.get(), dense_, 0.1f);
    Read(file, weights_.get(), 4 * dense_);
    ReadTables(file, is_dlrm);
    Place(is_dlrm);
    ReadBatches(file);
    logit_gradients_.Resize(batch);
    sums_.Resize(16 * threads);
    int64_t most = 0;
    for (auto* stack : {&first_, &second_}) {
      for (auto& layer : *stack) {
        most = std::max({most, PackedSize(layer->units, std::max(layer->inputs, batch)),
                         PackedSize(layer->inputs, layer->units)});
      }
    }
    scratch_ = std::make_unique<Scratch>(threads, most);
    int64_t widest = 0;
    for (auto* stack : {&first_, &second_}) {
      for (auto& layer : *stack) widest = std::max(widest, layer->units);
    }
    for (int i = 0; i < threads; ++i) column_sums_.push_back(std::make_unique<Sums>(widest));
    unique_.resize(threads);
    for (int i = 0; i < threads; ++i) {
      row_sums_.push_back(std::make_unique<Floats>(batch * kDim));
    }
  }

  void Run(int64_t steps, float* losses) {
    crew_.Run([&](Part part) {
      crew_.Begin(part);
      for (int64_t i = 0; i < steps; ++i) {
        if (part.number == 0) batch_ = (steps_++) % header_.batches;
        crew_.Meet(part, kWaits);
        header_.model == kDlrm ? DlrmStep(part) : DeepFmStep(part);
        crew_.Meet(part, kDenseUpdates);
        if (part.number > 0 || losses == nullptr) continue;
        double sum = 0;
        for (int t = 0; t < part.count; ++t) sum += sums_.get()[16 * t];
        losses[i] = static_cast<float>(sum / header_.batch);
      }
    });
  }

  // CPU seconds of a step in each part, all threads together; [kKinds].
  void Parts(int64_t steps, double* seconds) {
    crew_.Count(true);
    Run(steps, nullptr);
    for (int kind = 0; kind < kKinds; ++kind) {
      seconds[kind] = crew_.Sum(static_cast<Kind>(kind)) / static_cast<double>(steps);
    }
    crew_.Count(false);
  }

  // Floating-point operations of a step's products.
  double Flops() const {
    double sum = 0;
    for (auto* stack : {&first_, &second_}) {
      for (auto& layer : *stack) {
        // DLRM's numbers have no gradient.
        const int products = layer->in_gradient.at == nullptr ? 2 : 3;
        sum += 2.0 * products * header_.batch * static_cast<double>(layer->inputs * layer->units);
      }
    }
    return sum;
  }

 private:
  using Layers = std::vector<std::unique_ptr<Layer>>;

  static void Read(std::FILE* file, void* to, int64_t bytes) {
    if (std::fread(to, 1, bytes, file) != static_cast<size_t>(bytes)) throw std::bad_alloc();
  }

  void Stack(const std::vector<int64_t>& widths, Layers* layers) {
    const int64_t batch = header_.batch;
    for (size_t i = 0; i + 1 < widths.size(); ++i) {
      auto layer = std::make_unique<Layer>();
      layer->inputs = widths[i];
      layer->units = widths[i + 1];
      layer->offset = dense_;
      dense_ += layer->weights();
      layer->active.Resize(batch * layer->units);
      layer->active_gradient.Resize(batch * layer->units);
      layer->mean.Resize(layer->units);
      layer->scale.Resize(layer->units);
      layers->push_back(std::move(layer));
    }
  }

  void ReadTables(std::FILE* file, bool is_dlrm) {
    const int64_t rows = header_.buckets;
    for (int64_t t = 0; t < (is_dlrm ? 1 : 2) * kTables; ++t) {
      const int64_t count = rows * (t < kTables ? kDim : 1);
      tables_.push_back(std::make_unique<Floats>(2 * count));
      float* table = tables_.back()->get();
      Read(file, table, 4 * count);
      std::fill_n(table + count, count, 0.1f);
      places_.emplace_back(rows, -1);
    }
  }

  Matrix NewMatrix(int64_t columns) {
    const int64_t step = (columns + 15) / 16 * 16;
    buffers_.push_back(std::make_unique<Floats>(header_.batch * step));
    return {buffers_.back()->get(), step};
  }

  // Where each layer reads and writes.
  void Place(bool is_dlrm) {
    const int64_t wide = is_dlrm ? kDim + kPairs : 1 + kDim + 32;
    crossed_ = NewMatrix(wide);
    crossed_gradient_ = NewMatrix(wide);
    const int64_t width = is_dlrm ? kVectorsOfExample * kDim : kNumbers + kTables * kDim;
    vectors_ = NewMatrix(width);
    vectors_gradient_ = NewMatrix(width);
    squared_ = NewMatrix(kDim);
    numbers_ = NewMatrix(kNumbers);
    for (auto* stack : {&first_, &second_}) {
      for (size_t i = 0; i < stack->size(); ++i) {
        Layer* layer = (*stack)[i].get();
        layer->out = NewMatrix(layer->units);
        layer->out_gradient = NewMatrix(layer->units);
        if (i > 0) {
          layer->in = (*stack)[i - 1]->out;
          layer->in_gradient = (*stack)[i - 1]->out_gradient;
        }
      }
    }
    second_[0]->in = crossed_;
    second_[0]->in_gradient = crossed_gradient_;
    Layer* last = first_.back().get();
    if (is_dlrm) {
      first_[0]->in = numbers_;
      first_[0]->in_gradient = {nullptr, 0};
      // The vector of the numbers stands before those of the tables.
      last->out = vectors_;
      last->out_gradient = vectors_gradient_;
    } else {
      first_[0]->in = vectors_;
      first_[0]->in_gradient = vectors_gradient_;
      last->out = {crossed_.at + 1 + kDim, crossed_.step};
      last->out_gradient = {crossed_gradient_.at + 1 + kDim, crossed_gradient_.step};
    }
  }

  void ReadBatches(std::FILE* file) {
    const int64_t batch = header_.batch;
    for (int i = 0; i < header_.batches; ++i) {
      batches_numbers_.push_back(std::make_unique<Floats>(batch * kNumbers));
      labels_.push_back(std::make_unique<Floats>(batch));
      ids_.emplace_back(kTables * batch);
      Read(file, batches_numbers_.back()->get(), 4 * batch * kNumbers);
      Read(file, labels_.back()->get(), 4 * batch);
      Read(file, ids_.back().data(), 4 * kTables * batch);
    }
  }

  // Vectors of examples [begin, end), from `first` on of a row of `vectors_`.
  void LookUp(int64_t begin, int64_t end, int64_t first) {
    for (int64_t t = 0; t < kTables; ++t) {
      const float* table = tables_[t]->get();
      const int32_t* ids = ids_[batch_].data() + t * header_.batch;
      for (int64_t row = begin; row < end; ++row) {
        if (row + 16 < end) __builtin_prefetch(table + int64_t{ids[row + 16]} * kDim);
        float* to = vectors_.Row(row) + first + t * kDim;
        std::memcpy(to, table + int64_t{ids[row]} * kDim, 4 * kDim);
      }
    }
  }

  void Logarithms(int64_t begin, int64_t end, Matrix to) {
    const float* from = batches_numbers_[batch_]->get();
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t i = 0; i < kNumbers; ++i) {
        to.Row(row)[i] = std::log1p(std::max(from[row * kNumbers + i], 0.0f));
      }
    }
  }

  void Forward(const Layers& layers, Part part) {
    for (auto& layer : layers) {
      const float* kernel = weights_.get() + layer->offset;
      const float* bias = kernel + layer->units * layer->inputs;
      const Product product = {layer->in.at,
                               layer->in.step,
                               false,
                               kernel,
                               layer->units,
                               false,
                               layer->active.get(),
                               layer->units,
                               header_.batch,
                               layer->units,
                               layer->inputs,
                               bias,
                               true};
      Sums* own = column_sums_[part.number].get();
      own->Clear(layer->units);
      Multiply(product, part, &crew_, scratch_.get(),
               [&](int64_t row, int64_t rows, int64_t begin, int64_t end) {
                 BlockMoments(*layer, row, rows, begin, end, own);
               });
      crew_.Meet(part, kProducts);
      Moments(layer.get(), header_.batch, part.Begin(layer->units, kLanes),
              part.End(layer->units, kLanes), column_sums_);
      crew_.Meet(part, kNorms);
      NormForward(*layer, weights_.get(), Begin(part), End(part), own);
      crew_.Meet(part, kNorms);
    }
  }

  void Backward(const Layers& layers, Part part) {
    for (size_t i = layers.size(); i-- > 0;) {
      Layer* layer = layers[i].get();
      Sums* own = column_sums_[part.number].get();
      const int64_t first = part.Begin(layer->units, kLanes), last = part.End(layer->units, kLanes);
      if (i + 1 == layers.size()) {
        own->Clear(layer->units);
        BlockProducts(*layer, Begin(part), End(part) - Begin(part), 0, layer->units, own);
        crew_.Meet(part, kNorms);
      }
      NormBackward(layer, weights_.get(), gradients_.get(), header_.batch, Begin(part), End(part),
                   first, last, column_sums_, own);
      crew_.Meet(part, kNorms);
      BiasGradient(*layer, gradients_.get(), first, last, column_sums_);
      const Product of_kernel = {layer->in.at,
                                 layer->in.step,
                                 true,
                                 layer->active_gradient.get(),
                                 layer->units,
                                 false,
                                 gradients_.get() + layer->offset,
                                 layer->units,
                                 layer->inputs,
                                 layer->units,
                                 header_.batch};
      Multiply(of_kernel, part, &crew_, scratch_.get(), kNothingMore);
      crew_.Meet(part, kProducts);
      if (layer->in_gradient.at == nullptr) continue;
      const Product of_in = {layer->active_gradient.get(),
                             layer->units,
                             false,
                             weights_.get() + layer->offset,
                             layer->units,
                             true,
                             layer->in_gradient.at,
                             layer->in_gradient.step,
                             header_.batch,
                             layer->inputs,
                             layer->units};
      if (i == 0) {
        Multiply(of_in, part, &crew_, scratch_.get(), kNothingMore);
      } else {
        own->Clear(layer->inputs);
        Multiply(of_in, part, &crew_, scratch_.get(),
                 [&](int64_t row, int64_t rows, int64_t begin, int64_t end) {
                   BlockProducts(*layers[i - 1], row, rows, begin, end, own);
                 });
      }
      crew_.Meet(part, kProducts);
    }
  }

  // Logits, losses and the gradient of the last layer.
  void Logits(Part part) {
    const Layer& layer = *second_.back();
    const float* kernel = weights_.get() + logit_at_;
    const float bias = kernel[last_units_], mean = 1.0f / static_cast<float>(header_.batch);
    double losses = 0;
    for (int64_t row = Begin(part); row < End(part); ++row) {
      const float* from = layer.out.Row(row);
      Vec sums = {};
      for (int64_t i = 0; i < last_units_; i += kLanes) {
        sums += Load(from + i) * Load(kernel + i);
      }
      float logit = bias;
      for (int i = 0; i < kLanes; ++i) logit += sums[i];
      const float label = labels_[batch_]->get()[row];
      losses += std::max(logit, 0.0f) - logit * label + std::log1p(std::exp(-std::abs(logit)));
      const float gradient = (1.0f / (1.0f + std::exp(-logit)) - label) * mean;
      logit_gradients_.get()[row] = gradient;
      float* to = layer.out_gradient.Row(row);
      for (int64_t i = 0; i < last_units_; ++i) to[i] = gradient * kernel[i];
    }
    sums_.get()[16 * part.number] = static_cast<float>(losses);
    crew_.Meet(part, kOthers);
    // Of the kernel, then of the bias.
    const float* gradients = logit_gradients_.get();
    float* to = gradients_.get() + logit_at_;
    const int64_t begin = part.Begin(last_units_, kLanes), end = part.End(last_units_, kLanes);
    std::fill(to + begin, to + end, 0.0f);
    for (int64_t row = 0; row < header_.batch; ++row) {
      const float* from = layer.out.Row(row);
      for (int64_t i = begin; i < end; ++i) to[i] += gradients[row] * from[i];
    }
    if (part.number > 0) return;
    float sum = 0;
    for (int64_t row = 0; row < header_.batch; ++row) sum += gradients[row];
    to[last_units_] = sum;
  }

  int64_t Begin(Part part) const { return part.Begin(header_.batch); }
  int64_t End(Part part) const { return part.End(header_.batch); }

  void DlrmStep(Part part) {
    Logarithms(Begin(part), End(part), numbers_);
    crew_.Did(part, kOthers);
    LookUp(Begin(part), End(part), kDim);
    crew_.Meet(part, kLookUps);
    Forward(first_, part);
    for (int64_t row = Begin(part); row < End(part); ++row) {
      std::memcpy(crossed_.Row(row), vectors_.Row(row), 4 * kDim);
      Dots(vectors_.Row(row), crossed_.Row(row) + kDim);
    }
    crew_.Meet(part, kInteractions);
    Forward(second_, part);
    Logits(part);
    crew_.Meet(part, kOthers);
    Backward(second_, part);
    for (int64_t row = Begin(part); row < End(part); ++row) {
      float* to = vectors_gradient_.Row(row);
      std::memcpy(to, crossed_gradient_.Row(row), 4 * kDim);
      std::memset(to + kDim, 0, 4 * kTables * kDim);
      DotsGradient(vectors_.Row(row), crossed_gradient_.Row(row) + kDim, to);
    }
    crew_.Meet(part, kInteractions);
    Backward(first_, part);
    UpdateTables(part, kDim);
    crew_.Did(part, kTableUpdates);
    // Their gradients are all there: the threads met behind the last product.
    const float* gradient = gradients_.get();
    float *weight = weights_.get(), *square = slots_.get();
    for (int64_t i = part.Begin(dense_, kLanes); i < part.End(dense_, kLanes); ++i) {
      square[i] += gradient[i] * gradient[i];
      weight[i] -= header_.rate * gradient[i] / std::sqrt(square[i]);
    }
  }

  void DeepFmStep(Part part) {
    Logarithms(Begin(part), End(part), vectors_);
    crew_.Did(part, kOthers);
    LookUp(Begin(part), End(part), kNumbers);
    crew_.Did(part, kLookUps);
    const float* linear = weights_.get() + linear_at_;
    for (int64_t row = Begin(part); row < End(part); ++row) {
      const float* numbers = vectors_.Row(row);
      float sum = linear[kNumbers];
      for (int64_t i = 0; i < kNumbers; ++i) sum += numbers[i] * linear[i];
      for (int64_t t = 0; t < kTables; ++t) {
        sum += tables_[kTables + t]->get()[ids_[batch_][t * header_.batch + row]];
      }
      float* to = crossed_.Row(row);
      to[0] = sum;
      float all[kDim] = {0}, squares[kDim] = {0};
      for (int64_t t = 0; t < kTables; ++t) {
        for (int64_t d = 0; d < kDim; ++d) {
          const float value = numbers[kNumbers + t * kDim + d];
          all[d] += value;
          squares[d] += value * value;
        }
      }
      for (int64_t d = 0; d < kDim; ++d) to[1 + d] = 0.5f * (all[d] * all[d] - squares[d]);
      std::memcpy(squared_.Row(row), all, sizeof(all));
    }
    crew_.Meet(part, kInteractions);
    Forward(first_, part);
    Forward(second_, part);
    Logits(part);
    crew_.Meet(part, kOthers);
    Backward(second_, part);
    Backward(first_, part);
    for (int64_t row = Begin(part); row < End(part); ++row) {
      const float *all = squared_.Row(row), *gradient = crossed_gradient_.Row(row) + 1;
      const float* vectors = vectors_.Row(row) + kNumbers;
      float* to = vectors_gradient_.Row(row) + kNumbers;
      for (int64_t t = 0; t < kTables; ++t) {
        for (int64_t d = 0; d < kDim; ++d) {
          to[t * kDim + d] += gradient[d] * (all[d] - vectors[t * kDim + d]);
        }
      }
    }
    crew_.Did(part, kInteractions);
    if (part.number == 0) {
      float* to = gradients_.get() + linear_at_;
      std::fill_n(to, kNumbers + 1, 0.0f);
      for (int64_t row = 0; row < header_.batch; ++row) {
        const float gradient = crossed_gradient_.Row(row)[0];
        for (int64_t i = 0; i < kNumbers; ++i) to[i] += gradient * vectors_.Row(row)[i];
        to[kNumbers] += gradient;
      }
    }
    crew_.Meet(part, kOthers);
    UpdateTables(part, kNumbers);
    crew_.Did(part, kTableUpdates);
    Adam(part);
  }

  void UpdateTables(Part part, int64_t first) {
    const int64_t batch = header_.batch;
    const int64_t count = static_cast<int64_t>(tables_.size());
    for (int64_t t = part.number; t < count; t += part.count) {
      const int64_t feature = t % kTables;
      const int32_t* ids = ids_[batch_].data() + feature * batch;
      float* table = tables_[t]->get();
      float *squares = table + tables_[t]->size() / 2, *sums = row_sums_[part.number]->get();
      if (t < kTables) {
        const Matrix gradients = {vectors_gradient_.at + first + feature * kDim,
                                  vectors_gradient_.step};
        UpdateRows<kDim>(table, squares, places_[t].data(), ids, batch, gradients,
                         header_.table_rate, &unique_[part.number], sums);
      } else {
        UpdateRows<1>(table, squares, places_[t].data(), ids, batch, crossed_gradient_,
                      header_.table_rate, &unique_[part.number], sums);
      }
    }
  }

  void Adam(Part part) {
    const double time = static_cast<double>(steps_);
    const float rate = static_cast<float>(header_.rate * std::sqrt(1 - std::pow(0.999, time)) /
                                          (1 - std::pow(0.9, time)));
    const float* gradient = gradients_.get();
    float *weight = weights_.get(), *first = slots_.get(), *second = first + dense_;
    for (int64_t i = part.Begin(dense_, kLanes); i < part.End(dense_, kLanes); ++i) {
      first[i] += (gradient[i] - first[i]) * 0.1f;
      second[i] += (gradient[i] * gradient[i] - second[i]) * 0.001f;
      weight[i] -= rate * first[i] / (std::sqrt(second[i]) + 1e-8f);
    }
  }

  Crew crew_;
  Header header_;
  Layers first_, second_;
  int64_t dense_ = 0, last_units_ = 0, logit_at_ = 0, linear_at_ = 0;
  Floats weights_, gradients_, slots_, logit_gradients_, sums_;
  std::vector<std::unique_ptr<Floats>> tables_, buffers_, batches_numbers_, labels_, row_sums_;
  std::vector<std::vector<int32_t>> places_, ids_, unique_;
  Matrix crossed_, crossed_gradient_, vectors_, vectors_gradient_, squared_, numbers_;
  std::unique_ptr<Scratch> scratch_;
  AllSums column_sums_;
  int64_t steps_ = 0, batch_ = 0;
};

}  // namespace

extern "C" {

// A program with the weights and batches of a file; null where there is no such file.
void* step_limit_open(const char* path, int threads) {
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return nullptr;
  void* program = nullptr;
  try {
    program = new Program(file, threads);
  } catch (const std::bad_alloc&) {
  }
  std::fclose(file);
  return program;
}

// Runs steps; `losses` has room for as many numbers, or is null.
void step_limit_run(void* program, int64_t steps, float* losses) {
  static_cast<Program*>(program)->Run(steps, losses);
}

// Runs steps; `seconds` gets the CPU time of a step in each Kind, of all threads together.
void step_limit_parts(void* program, int64_t steps, double* seconds) {
  static_cast<Program*>(program)->Parts(steps, seconds);
}

double step_limit_flops(void* program) { return static_cast<Program*>(program)->Flops(); }

void step_limit_close(void* program) { delete static_cast<Program*>(program); }

// Multiply-adds a second of one of so many threads, of its CPU time, in products of these sizes.
double step_limit_multiply_adds(int threads, int64_t rows, int64_t columns, int64_t inner,
                                int64_t times) {
  Crew crew(threads);
  Scratch scratch(threads, PackedSize(columns, inner));
  Floats a(rows * inner), b(inner * columns), c(rows * columns);
  std::fill_n(a.get(), a.size(), 0.5f);
  std::fill_n(b.get(), b.size(), 0.5f);
  const Product product = {a.get(),   inner, false,   b.get(), columns, false, c.get(),
                           columns, rows,  columns, inner};
  crew.Count(true);
  crew.Run([&](Part part) {
    crew.Begin(part);
    for (int64_t i = 0; i < times; ++i) {
      Multiply(product, part, &crew, &scratch, kNothingMore);
      crew.Meet(part, kProducts);
    }
  });
  return static_cast<double>(rows * columns * inner * times) /
         (crew.Sum(kProducts) + crew.Sum(kCopies));
}

}  // extern "C"
