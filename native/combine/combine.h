#ifndef WORKBENCH_COMBINE_COMBINE_H_
#define WORKBENCH_COMBINE_COMBINE_H_

// Post-lookup: sums, means or "sqrtn" sums of the vectors of each row, and the way back.
//
// Rows are independent of each other and a row's vectors are added in the order of its ids, so that
// any split of the work over threads gives the same bits. Sums are float32 whatever T is, and
// float64 of rows with more than a thousand ids.

#include <cstdint>
#include <string>

namespace workbench {

enum class Combiner { kSum, kMean, kSqrtn };

// The vectors that were looked up for the ids of a batch.
template <typename T>
struct LookedUp {
  const T* const* shards = nullptr;  // of each shard its vectors, [n, dim]
  const T* const* vectors = nullptr;  // [ids], where each lies; then none is in a shard
  int64_t dim = 0;
  int64_t stride = 0;  // from one combined row to the next; 0 is dim
  int64_t rows = 0;
  const int32_t* splits = nullptr;       // [rows + 1], ids of each row
  bool one_each = false;  // each row has one id, as `splits` says too
  const int32_t* index = nullptr;        // [ids], of each its unique id; null if they are not unique
  const int32_t* permutation = nullptr;  // [unique, 2], shard and vector; null: one has all in order
  const int64_t* table_row = nullptr;  // [unique]; not null: the only shard is the table itself
  bool fetched = false;  // the memory was asked for rows of the table when their ids were read
  const float* weights = nullptr;        // [ids], or null
  Combiner combiner = Combiner::kSum;
  float max_norm = -1;  // longer vectors are shortened to it; below 0 none

  int32_t Unique(int64_t id) const { return index == nullptr ? id : index[id]; }
  int64_t Place(int64_t unique, int* shard) const {
    *shard = permutation == nullptr ? 0 : permutation[2 * unique];
    return permutation == nullptr ? unique : permutation[2 * unique + 1];
  }
};

// How many of each the tensors hold; what comes from a graph may not be believed.
struct Sizes {
  int64_t ids = 0;
  int64_t unique = 0;
  int shards = 1;
  const int64_t* vectors = nullptr;  // [shards]
};

// Says what does not fit together, so that no function below reads outside; empty if all does.
std::string Misfit(const Sizes& sizes, int64_t rows, const int32_t* splits, const int32_t* index,
                   const int32_t* permutation);

// Says which vector two ids have, so that the gradient of another would be written by nobody; empty
// if the permutation, which fits, gives each its own.
std::string SharedVector(const Sizes& sizes, const int32_t* permutation);

// out: [rows, dim], rows `stride` apart; a row without ids, or whose weights cancel out, is 0. Sets
// rows [begin, end).
template <typename T>
void Combine(const LookedUp<T>& in, int64_t begin, int64_t end, T* out);

// The gradient of each id's vector, for rows [begin, end), where ids are not unique.
//
//   grad: [rows, dim], of the combined rows. out: of each shard [n, dim], all set.
template <typename T>
void SpreadGradient(const LookedUp<T>& in, const T* grad, int64_t begin, int64_t end,
                    T* const* out);

// The gradient of each unique id's vector, for unique ids [begin, end): sums over all rows.
//
//   sums: scratch, float32 [unique, dim]; may be the first shard of `out` where T is float and
//     there is one shard.
template <typename T>
void GatherGradient(const LookedUp<T>& in, const T* grad, int64_t begin, int64_t end, float* sums,
                    T* const* out);

// The gradient of each id's weight, [ids], for rows [begin, end). Rows of `grad` are `in.stride`
// apart.
template <typename T>
void WeightGradient(const LookedUp<T>& in, const T* grad, int64_t begin, int64_t end, float* out);

// What the gradient of each combined row is multiplied with on its way to a vector of weight 1, for
// rows [begin, end) of `in`, of which splits, weights and combiner are read.
//
//   out: [end - begin].
void RowFactors(const LookedUp<float>& in, int64_t begin, int64_t end, float* out);

// Who asked for which row of a table, in order of the rows.
template <typename T>
struct TouchedRows {
  int64_t dim = 0;
  const int32_t* firsts = nullptr;      // [rows + 1], of each row its part of `examples`
  const int32_t* examples = nullptr;    // [ids], who asked
  const T* const* gradients = nullptr;  // of each example [dim]
  const float* factors = nullptr;       // of each example
};

// The gradients of rows [begin, end) of `in`: sums over all who asked, in the order of their ids.
//
//   out: [end - begin, dim].
template <typename T>
void SumGradients(const TouchedRows<T>& in, int64_t begin, int64_t end, T* out);

// The same, and behind them the sums of the squares of all that is summed.
//
//   out: [end - begin, 2, dim].
void SumGradientsAndSquares(const TouchedRows<float>& in, int64_t begin, int64_t end, float* out);

}  // namespace workbench

#endif  // WORKBENCH_COMBINE_COMBINE_H_
