// Kernels of grouped lookups, see grouped_ops.cc.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <vector>

#include "combine/combine.h"
#include "combine/combine_calls.h"
#include "combine/usual_widths.h"
#include "lookup/grouped/grouped_inputs.h"
#include "lookup/grouped/grouped_tables.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "threading/intra_op_threads.h"

namespace workbench::grouped {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

constexpr int64_t kAllIds = std::numeric_limits<int64_t>::max();
// Rows from which on asking for them takes the memory so long that ids are read meanwhile. Of
// shorter ones few are asked for when they are read: those that nothing before them looks ahead to.
constexpr int64_t kLongRowBytes = 256;

FetchedTable Fetched(const void* table, int64_t row_bytes) {
  return {table, row_bytes, row_bytes < kLongRowBytes ? combine::kFarAhead : kAllIds};
}

template <typename T, typename Id, bool kResource>
class LookUpOp : public OpKernel {
 public:
  explicit LookUpOp(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, attributes_.Read(c));
  }

  void Compute(OpKernelContext* c) override {
    Tables<T, kResource> tables;
    OP_REQUIRES_OK(c, tables.Read(c, attributes_.dims()));
    Ids<Id> ids;
    OP_REQUIRES_OK(c, ids.Read(c, attributes_, tables.rows()));
    Layout<T> out;
    OP_REQUIRES_OK(c, AllocateVectors(c, attributes_, ids, &out));
    std::vector<bool> unordered(attributes_.count(), false);
    OP_REQUIRES_OK(c, Run(c, tables, ids, out, &unordered));
    if (std::find(unordered.begin(), unordered.end(), true) == unordered.end()) return;
    for (int f = 0; f < attributes_.count(); ++f) {
      if (unordered[f]) OP_REQUIRES_OK(c, ids.Order(c, attributes_, f));
    }
    OP_REQUIRES_OK(c, Run(c, tables, ids, out, &unordered));
  }

 private:
  absl::Status Run(OpKernelContext* c, const Tables<T, kResource>& tables, const Ids<Id>& ids,
                   const Layout<T>& out, std::vector<bool>* unordered) const {
    const std::vector<Block> blocks = AllBlocks(ids, attributes_.count());
    FirstError error;
    std::mutex mu;
    int64_t cost = 0;
    for (int f = 0; f < attributes_.count(); ++f) {
      const int64_t dim = tables[attributes_.features()[f].table].dim_size(1);
      cost += ids[f].count * CostOfId(dim * sizeof(T));
    }
    const auto part = [&](int64_t begin, int64_t end) {
      BlockRows rows;
      for (int64_t b = begin; b < end; ++b) {
        const Block& block = blocks[b];
        const Feature& feature = attributes_.features()[block.feature];
        const Tensor& table = tables[feature.table];
        const T* base = table.flat<T>().data();
        const FetchedTable fetched = Fetched(base, table.dim_size(1) * sizeof(T));
        const BlockState state = ReadBlock(ids[block.feature], block.number, &rows, fetched);
        if (state == BlockState::kNoSuchRow) {
          error.Found(b, NoSuchRow(feature, ids[block.feature], rows));
          return;
        }
        if (state == BlockState::kUnordered) {
          const std::lock_guard<std::mutex> hold(mu);
          (*unordered)[block.feature] = true;
          continue;
        }
        const int64_t stride = out.strides[block.feature];
        LookedUp<T> in;
        in.shards = &base;
        in.dim = table.dim_size(1);
        in.stride = stride;
        in.rows = rows.end - rows.begin;
        in.splits = rows.splits.data();
        in.one_each = rows.one_each;
        in.table_row = rows.rows.data();
        in.fetched = !rows.one_each && fetched.ids == kAllIds;
        in.weights = ids[block.feature].weights == nullptr ? nullptr : rows.weights.data();
        in.combiner = feature.combiner;
        in.max_norm = feature.max_norm;
        Combine(in, 0, in.rows, out.begins[block.feature] + rows.begin * stride);
      }
    };
    ByCost(c, static_cast<int64_t>(blocks.size()), cost, part);
    return error.status();
  }

  Attributes attributes_;
};

template <typename T, typename Id>
using TensorLookUpOp = LookUpOp<T, Id, false>;
template <typename T, typename Id>
using ResourceLookUpOp = LookUpOp<T, Id, true>;
WORKBENCH_GROUPED_KERNELS("WorkbenchGroupedLookUp", TensorLookUpOp);
WORKBENCH_GROUPED_KERNELS("WorkbenchResourceGroupedLookUp", ResourceLookUpOp);

}  // namespace
}  // namespace workbench::grouped
