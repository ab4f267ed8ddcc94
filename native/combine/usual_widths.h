#ifndef WORKBENCH_COMBINE_USUAL_WIDTHS_H_
#define WORKBENCH_COMBINE_USUAL_WIDTHS_H_

// The loops that all time of a lookup goes into: sums of vectors of usual widths, neither weighted
// nor shortened, so that nothing in them depends on what kind of lookup this is.

#include <cmath>
#include <cstdint>

#include "combine/combine.h"
#include "instructions/clones.h"

namespace workbench::combine {

// Vectors to ask the memory for ahead of their use: soon into the nearest cache, long before, where
// they are in memory, into the next one. One stage alone leaves the memory idle for half the time.
constexpr int kAhead = 24;
constexpr int kFarAhead = 96;
// A row of more ids is summed in double: floats lose a bit for every fourfold length.
constexpr int32_t kLongRow = 1024;

WORKBENCH_INLINE bool IsLong(const int32_t* splits, int64_t row) {
  return splits[row + 1] - splits[row] > kLongRow;
}

// What a row's sum is divided by, whose ids there are `total` of, or whose weights, for kSqrtn their
// squares, are so much together.
WORKBENCH_INLINE float DivisorOf(Combiner combiner, float total) {
  if (combiner == Combiner::kSum) return 1.0f;
  return combiner == Combiner::kSqrtn ? std::sqrt(total) : total;
}

// Whether the width is a usual one, and rows [begin, end) were combined, as Combine has it. Vectors
// lie in a table or anywhere.
bool CombinedWidth(const LookedUp<float>& in, int64_t begin, int64_t end, float* out);

// A row of any length or width, summed in double.
void CombineLong(const LookedUp<float>& in, int64_t row, float* out);

}  // namespace workbench::combine

#endif  // WORKBENCH_COMBINE_USUAL_WIDTHS_H_
