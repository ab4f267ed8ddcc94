#ifndef WORKBENCH_DENSE_INTERACTION_DOT_INTERACTION_H_
#define WORKBENCH_DENSE_INTERACTION_DOT_INTERACTION_H_

// Dot products of pairs of an example's vectors, and their gradient.
//
// Examples are independent of each other and each sum has one order, so that any split of the work
// over threads gives the same bits.

#include <cstdint>
#include <vector>

namespace workbench {

// Which vectors of an example are multiplied with which.
class DotPairs {
 public:
  // vectors: of an example, at least 1. places: of each pair, first * vectors + second.
  DotPairs(int64_t vectors, const std::vector<int64_t>& places);

  int64_t vectors() const { return vectors_; }
  int64_t size() const { return static_cast<int64_t>(pairs_.size()); }

  // Sets the dots of examples [begin, end).
  //
  //   x: [examples, vectors, dim]. dots: [examples, size].
  void Multiply(const float* x, int64_t dim, int64_t begin, int64_t end, float* dots) const;

  // Sets the gradient of x from the one of the dots, for examples [begin, end).
  //
  //   x, x_gradient: [examples, vectors, dim]. gradient: [examples, size].
  void MultiplyGradient(const float* x, const float* gradient, int64_t dim, int64_t begin,
                        int64_t end, float* x_gradient) const;

 private:
  struct Pair {
    int32_t first, second;
  };

  const int64_t vectors_;
  std::vector<Pair> pairs_;
  // Of each block of first vectors, how many second ones from the beginning their pairs reach.
  std::vector<int64_t> reach_;
};

}  // namespace workbench

#endif  // WORKBENCH_DENSE_INTERACTION_DOT_INTERACTION_H_
