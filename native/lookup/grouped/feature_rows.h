#ifndef WORKBENCH_LOOKUP_GROUPED_FEATURE_ROWS_H_
#define WORKBENCH_LOOKUP_GROUPED_FEATURE_ROWS_H_

// The ids of one feature of many, read block by block: which rows of the table each example asks
// for. Blocks are read in any order and on any thread, and together they see every id once, or one
// of them says that the ids do not come in order of their examples.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace workbench {

// Ids of a block at most, about: it has whole examples.
constexpr int64_t kMostBlockIds = 2048;

// A feature's ids as they came. An example is a row of the batch.
template <typename Id>
struct FeatureIds {
  const Id* ids = nullptr;
  int64_t count = 0;
  int64_t examples = 0;
  bool dense = false;                // each id is an example of its own; or
  const int64_t* indices = nullptr;  // [count, 2], of a SparseTensor; or
  const int64_t* splits = nullptr;   // [examples + 1], ids of each example
  int64_t table_rows = 0;
  const float* weights = nullptr;    // [count], or null
  const int32_t* places = nullptr;   // [count], where weighted ids stood before they were ordered
  bool prune = false;                // drop ids below 0
  bool prune_weights = false;        // drop ids whose weight is not above 0
  bool fills = false;                // an example without ids gets fill_id
  int64_t fill_id = 0;               // a row of the table
  int64_t block_ids = kMostBlockIds;
};

// Ids of a block that with their vectors fit into the cache nearest to a core but one.
inline int64_t BlockIds(int64_t row_bytes) {
  return std::clamp<int64_t>((512 << 10) / row_bytes, 256, kMostBlockIds);
}

// How many blocks a feature has, at least one.
template <typename Id>
int64_t CountBlocks(const FeatureIds<Id>& in);

// What a block of a feature asks for.
struct BlockRows {
  int64_t begin = 0, end = 0;     // the examples
  int64_t first = 0;              // position of their first id in the input
  std::vector<int64_t> rows;      // of the table; the first splits.back() count
  std::vector<int32_t> splits;    // [end - begin + 1], those of each example
  bool one_each = false;          // each example has one, as `splits` says too
  // Of weighted ids, beside `rows`; a filled one has weight 1, and place -1.
  std::vector<float> weights;
  std::vector<int32_t> places;    // where in the input
};

enum class BlockState {
  kRead,
  kUnordered,  // ids do not come in order of their examples, or splits fall
  kNoSuchRow   // one of `rows`, as far as they are set, is not in the table
};

// A table whose rows the memory is asked for as soon as their ids are read.
struct FetchedTable {
  const void* begin = nullptr;
  int64_t row_bytes = 0;
  int64_t ids = 0;  // the first of a block whose rows are asked for
};

// Reads a block; what `out` held before is lost, its memory is used again.
template <typename Id>
BlockState ReadBlock(const FeatureIds<Id>& in, int64_t block, BlockRows* out,
                     const FetchedTable& fetched = {});

// Ids that a feature asks for at most, those that are filled in among them.
template <typename Id>
int64_t MostIds(const FeatureIds<Id>& in) {
  return in.count + (in.fills ? in.examples : 0);
}

// Where a block's `rows` begin in an array of MostIds: blocks keep clear of each other.
template <typename Id>
int64_t PlaceOf(const FeatureIds<Id>& in, const BlockRows& block) {
  return block.first + (in.fills ? block.begin : 0);
}

// The example, and the first id, of which ReadBlock says kNoSuchRow.
template <typename Id>
int64_t FirstOutside(const FeatureIds<Id>& in, const BlockRows& block, int64_t* id);

}  // namespace workbench

#endif  // WORKBENCH_LOOKUP_GROUPED_FEATURE_ROWS_H_
