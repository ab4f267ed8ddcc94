#include "dense/interaction/dot_interaction.h"

#include <algorithm>

#include "instructions/clones.h"
#include "instructions/vectors.h"

namespace workbench {
namespace {

// Rows and columns of sums that fit in registers.
constexpr int kHigh = 4;
constexpr int kWide = 16;

int64_t RoundedUp(int64_t count, int64_t to) { return (count + to - 1) / to * to; }

// A matrix with room for whole blocks of kHigh rows and kWide columns; what is beyond stays 0.
class Padded {
 public:
  Padded(int64_t rows, int64_t columns)
      : stride_(RoundedUp(columns, kWide)), numbers_(RoundedUp(rows, kHigh) * stride_) {}

  float* at(int64_t row, int64_t column) { return numbers_.data() + row * stride_ + column; }
  void Clear() { std::fill(numbers_.begin(), numbers_.end(), 0.0f); }

 private:
  int64_t stride_;
  std::vector<float> numbers_;
};

// Sets a block of `to`, which begins at [row, column], to the one of factors · from.
//
//   count: columns of factors, rows of from.
WORKBENCH_INLINE void MultiplyBlock(Padded& factors, int64_t count, Padded& from, int64_t row,
                                    int64_t column, Padded& to) {
  Vector sums[kHigh][kWide / kLanes] = {};
  for (int64_t i = 0; i < count; ++i) {
    const float* others = from.at(i, column);
    for (int r = 0; r < kHigh; ++r) {
      const Vector factor = *factors.at(row + r, i) - Vector{};
      for (int j = 0; j < kWide / kLanes; ++j) {
        sums[r][j] += factor * *reinterpret_cast<const Vector*>(others + j * kLanes);
      }
    }
  }
  for (int r = 0; r < kHigh; ++r) {
    for (int j = 0; j < kWide / kLanes; ++j) {
      *reinterpret_cast<Vector*>(to.at(row + r, column + j * kLanes)) = sums[r][j];
    }
  }
}

}  // namespace

DotPairs::DotPairs(int64_t vectors, const std::vector<int64_t>& places)
    : vectors_(vectors), reach_(RoundedUp(vectors, kHigh) / kHigh, 0) {
  pairs_.reserve(places.size());
  for (const int64_t place : places) {
    const int64_t first = place / vectors, second = place % vectors;
    pairs_.push_back({static_cast<int32_t>(first), static_cast<int32_t>(second)});
    int64_t& reach = reach_[first / kHigh];
    reach = std::max(reach, second + 1);
  }
}

WORKBENCH_CLONES void DotPairs::Multiply(const float* x, int64_t dim, int64_t begin, int64_t end,
                                         float* dots) const {
  Padded own(vectors_, dim), turned(dim, vectors_), products(vectors_, vectors_);
  for (int64_t example = begin; example < end; ++example) {
    const float* from = x + example * vectors_ * dim;
    for (int64_t i = 0; i < vectors_; ++i, from += dim) {
      std::copy(from, from + dim, own.at(i, 0));
      for (int64_t k = 0; k < dim; ++k) *turned.at(k, i) = from[k];
    }
    for (int64_t i = 0; i < vectors_; i += kHigh) {
      for (int64_t j = 0; j < reach_[i / kHigh]; j += kWide) {
        MultiplyBlock(own, dim, turned, i, j, products);
      }
    }
    float* to = dots + example * size();
    for (const Pair pair : pairs_) *to++ = *products.at(pair.first, pair.second);
  }
}

WORKBENCH_CLONES void DotPairs::MultiplyGradient(const float* x, const float* gradient, int64_t dim,
                                                 int64_t begin, int64_t end,
                                                 float* x_gradient) const {
  Padded own(vectors_, dim), factors(vectors_, vectors_), found(vectors_, dim);
  for (int64_t example = begin; example < end; ++example) {
    factors.Clear();
    const float* given = gradient + example * size();
    for (const Pair pair : pairs_) {
      *factors.at(pair.first, pair.second) += *given;
      *factors.at(pair.second, pair.first) += *given++;
    }
    const float* from = x + example * vectors_ * dim;
    for (int64_t i = 0; i < vectors_; ++i, from += dim) std::copy(from, from + dim, own.at(i, 0));
    for (int64_t i = 0; i < vectors_; i += kHigh) {
      for (int64_t k = 0; k < dim; k += kWide) MultiplyBlock(factors, vectors_, own, i, k, found);
    }
    float* to = x_gradient + example * vectors_ * dim;
    for (int64_t i = 0; i < vectors_; ++i, to += dim) {
      std::copy(found.at(i, 0), found.at(i, 0) + dim, to);
    }
  }
}

}  // namespace workbench
