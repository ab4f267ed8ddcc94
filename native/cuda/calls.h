#ifndef WORKBENCH_CUDA_CALLS_H_
#define WORKBENCH_CUDA_CALLS_H_

// What the GPU library offers besides kernels for TensorFlow: functions that take a stream, pointers
// and sizes, put work on the stream and return at once. Pointers are to the GPU's memory but where
// they are said to be the host's. They return a cudaError_t; 0 is success.
//
// One call does many features. A lookup of V1 or V2 is a call of one feature.

#include <cstdint>

#include "combine/combine.h"

namespace workbench::cuda {

enum class Scalar : int32_t { kFloat, kHalf, kBfloat16 };

constexpr int kMostRank = 5;  // of a SparseTensor
constexpr int kMostSlots = 2;

// How `rows` says which examples ids belong to.
enum class RowsKind : int32_t {
  kDense,     // not at all: each id is an example
  kSplits32,  // int32 [examples + 1]
  kSplits64,  // int64 [examples + 1]
  kIndices    // int64 [count, rank], in order
};

struct FeatureCall {
  const void* ids = nullptr;  // [count]
  const void* rows = nullptr;
  const int64_t* values = nullptr;  // [unique]: an id is a position here; null: it is the row itself
  int64_t count = 0;
  int64_t examples = 0;
  int64_t unique = 0;
  int64_t fill_id = 0;
  int64_t sizes[kMostRank - 1] = {};  // of kIndices, all but the last dimension
  int32_t rank = 2;
  RowsKind kind = RowsKind::kDense;
  Combiner combiner = Combiner::kSum;
  int32_t table = 0;
  int32_t prune = 0;  // drop ids below 0
  int32_t fills = 0;  // an example without ids gets fill_id
  void* vectors = nullptr;  // of a lookup its output, of a gradient that of its output
  int64_t stride = 0;       // from one example's vector to the next
  const float* weights = nullptr;    // [count]; null: each is 1
  float* weight_gradient = nullptr;  // [count], what workbench_cuda_weight_gradients makes
  int32_t prune_weights = 0;         // drop ids whose weight is not above 0
  int32_t shortens = 0;              // longer rows are shortened to max_norm
  float max_norm = 0;
};

struct TableCall {
  void* values = nullptr;  // [rows, dim]
  int64_t rows = 0;
  int64_t dim = 0;
  float* slots[kMostSlots] = {};  // the optimizer's, [rows, dim] or, of row_wise_adagrad, [rows]
};

struct GroupCall {
  Scalar type = Scalar::kFloat;
  int32_t wide_ids = 0;  // ids are int64, else int32
  int32_t feature_count = 0;
  int32_t table_count = 0;
  const FeatureCall* features = nullptr;  // the host's
  const TableCall* tables = nullptr;      // the host's
  uint64_t* complaint = nullptr;          // see complaint.h; null: nothing is noted
};

// Who asked for which row, in order of the rows; parts of a workspace.
struct Touched {
  int64_t entries = 0;   // most rows that can be asked for
  int64_t examples = 0;  // of all features; of a call with weights each entry is one
  int32_t row_bits = 0;  // a key is the table above, the row below
  int32_t key_bits = 0;
  uint64_t* keys = nullptr;         // [entries] ascending; behind them those that ask for nothing
  int32_t* who = nullptr;           // [entries] the example of each
  const void** gradients = nullptr;  // [examples]
  float* factors = nullptr;         // [examples]
  int32_t* numbers = nullptr;       // [entries] rows up to and with each, of kTouched
  int32_t* firsts = nullptr;        // of each row that has a number its first entry, and the end
  int32_t* table_firsts = nullptr;  // [tables + 1] of each table its first number, of kTouched
};

// Which rows have numbers, by which workbench_cuda_sum names them.
enum class Numbering : int32_t {
  kNone,
  kTouched,  // those that were asked for, in ascending order
  kEvery   // all of the only table
};

enum class Rule : int32_t { kGradientDescent, kAdagrad, kRowWiseAdagrad, kAdam, kFtrl };
constexpr int kMostNumbers = 8;

struct RuleCall {
  Rule rule = Rule::kGradientDescent;
  float numbers[kMostNumbers] = {};  // of the members of its struct in update_rules.h, in order
};

// Rows of one table, each changed by one gradient.
struct RowsCall {
  TableCall table;
  const int64_t* rows = nullptr;     // [count]
  const float* gradients = nullptr;  // [count, dim]
  int64_t count = 0;
  uint64_t* complaint = nullptr;
};

extern "C" {

// Combines the rows that each example asks for. The call needs no workspace.
int workbench_cuda_look_up(void* stream, const GroupCall* call);

// Bytes of the workspace for the functions below; at least 1.
int64_t workbench_cuda_workspace(const GroupCall* call, Numbering numbering);
int64_t workbench_cuda_rows_workspace(const RowsCall* call);

// Orders what the features ask for by row, the same every time; fills `asked`, the host's.
int workbench_cuda_ask(void* stream, const GroupCall* call, Numbering numbering, void* workspace,
                       Touched* touched);

// Sums the gradients of the rows with numbers [begin, begin + count), which are of one table; of
// rows as they are combined, so that max_norm has no part in them.
//
//   rows: [count] which they are, or null. sums: [count, dim].
int workbench_cuda_sum(void* stream, const GroupCall* call, const Touched* touched, int32_t table,
                       int64_t begin, int64_t count, int64_t* rows, void* sums);

// Makes the gradients of weights, of features that have a place for them.
int workbench_cuda_weight_gradients(void* stream, const GroupCall* call);

// Changes the rows that were asked for, of float32 tables, by the sums of their gradients.
int workbench_cuda_apply(void* stream, const GroupCall* call, const Touched* touched,
                         const RuleCall* rule);

// Changes rows of one table; one that is named twice is changed twice, in the order of its names.
int workbench_cuda_rows_apply(void* stream, const RowsCall* call, const RuleCall* rule,
                              void* workspace);

// Copies between memories of any kind, on the stream.
int workbench_cuda_copy(void* stream, const void* from, int64_t bytes, void* to);

// A word of the host's memory that kernels can write; null where there is none to get.
uint64_t* workbench_cuda_new_word();
void workbench_cuda_free_word(uint64_t* word);

const char* workbench_cuda_error(int error);

}  // extern "C"

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_CALLS_H_
