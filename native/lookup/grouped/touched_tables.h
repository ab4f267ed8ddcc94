#ifndef WORKBENCH_LOOKUP_GROUPED_ASKED_TABLES_H_
#define WORKBENCH_LOOKUP_GROUPED_ASKED_TABLES_H_

// What the gradient of a grouped lookup begins with: which rows of each table were asked for, by
// which examples, and where those examples' gradients lie.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "combine/combine.h"
#include "lookup/grouped/grouped_inputs.h"
#include "lookup/grouped/table_rows.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace workbench::grouped {

// Who asked for rows of one table.
template <typename T>
struct TouchedTable {
  TableRows rows;
  int64_t dim = 0;
  // Examples of all features of the table; of a weighted one each id is one.
  int64_t examples = 0;
  std::unique_ptr<const T*[]> gradients;  // [examples]
  std::unique_ptr<float[]> factors;
  std::vector<T> zeros;  // [dim], the gradient of a row that only stands in for missing ids

  TouchedRows<T> ToSum() const {
    return {dim, rows.firsts.get(), rows.examples.get(), gradients.get(), factors.get()};
  }
};

// Which rows of its table a feature's ids are, where they are no rows themselves: [MostIds], those
// of each block from PlaceOf on. Rows below 0 are none.
using FoundRows = std::vector<const int64_t*>;  // of each feature

// Reads input list "gradients", which must outlive what is made, of features with these ids.
//
//   columns: where in a concatenated gradient each feature begins; null: beside each other, and
//     nothing else is there.
//   found: null: ids are rows.
template <typename T, typename Id>
absl::Status ReadTouched(tensorflow::OpKernelContext* c, const Attributes& attributes,
                       const std::vector<int64_t>* columns, const FoundRows* found, Ids<Id>* ids,
                       std::vector<TouchedTable<T>>* out);

// The same of ids that are rows, and that it reads.
template <typename T, typename Id>
absl::Status ReadTouched(tensorflow::OpKernelContext* c, const Attributes& attributes,
                       const std::vector<int64_t>* columns, std::vector<TouchedTable<T>>* out);

// The ids of features whose lookup has checked which rows there are.
template <typename Id>
absl::Status ReadChecked(tensorflow::OpKernelContext* c, const Attributes& attributes,
                         Ids<Id>* ids);

// Calls `part` with ranges of the rows of tables, on the intra-op threads.
//
//   rows: of each table. step: of each table how many rows a range has at most. cost: of all.
void ByRangesOfTables(tensorflow::OpKernelContext* c, const std::vector<int64_t>& rows,
                      const std::vector<int64_t>& step, int64_t cost,
                      const std::function<void(size_t table, int64_t begin, int64_t end)>& part);

// The same of the rows that were asked for. A row takes `row_ns` besides summing its gradients.
template <typename T>
void ByRowsOfTables(tensorflow::OpKernelContext* c, const std::vector<TouchedTable<T>>& touched,
                    int64_t row_ns,
                    const std::function<void(size_t table, int64_t begin, int64_t end)>& part);

// Nanoseconds until a row is there that no cache has, some being fetched at a time.
constexpr int64_t kFarRow = 30;
constexpr int64_t kMostSummed = 64;

// Of how many rows of `dim` values the sums of gradients stay in the nearest cache until they are
// applied, at most kMostSummed.
inline int64_t SummedAtOnce(int64_t dim) {
  constexpr int64_t kBytes = 16 << 10;
  return std::clamp<int64_t>(kBytes / ((dim + 1) * static_cast<int64_t>(sizeof(float))), 1,
                             kMostSummed);
}

}  // namespace workbench::grouped

#endif  // WORKBENCH_LOOKUP_GROUPED_ASKED_TABLES_H_
