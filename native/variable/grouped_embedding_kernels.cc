// The kernel of a grouped lookup in EmbeddingVariables, see grouped_embedding_ops.cc.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "combine/combine.h"
#include "lookup/grouped/grouped_inputs.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/lib/core/threadpool.h"
#include "variable/embedding_variable_resource.h"

namespace workbench::grouped {
namespace {

using tensorflow::OpInputList;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

// Nanoseconds until a key is found.
constexpr int64_t kFindKey = 40;

// The tables of a run and their rows, held until the lookup is done.
class KeyTables {
 public:
  absl::Status Read(OpKernelContext* c, const std::vector<int64_t>& dims) {
    OpInputList handles, defaults;
    TF_RETURN_IF_ERROR(c->input_list("tables", &handles));
    TF_RETURN_IF_ERROR(c->input_list("default_rows", &defaults));
    for (int t = 0; t < handles.size(); ++t) {
      EmbeddingPtr table;
      TF_RETURN_IF_ERROR(
          FindTable(c, handles[t].scalar<tensorflow::ResourceHandle>()(), &table));
      if (table->table_options().dim != dims[t]) {
        return absl::InvalidArgumentError(
            absl::StrCat("EmbeddingVariable '", table->name(), "' has dimension ",
                         table->table_options().dim, "; expected ", dims[t]));
      }
      TF_RETURN_IF_ERROR(CheckDefaultRows(*table, defaults[t]));
      defaults_.push_back(&defaults[t]);
      tables_.push_back(std::move(table));
    }
    // In the order of their addresses, and each once.
    std::map<EmbeddingTable*, EmbeddingTable::Rows*> held;
    for (const EmbeddingPtr& each : tables_) held[each->table()] = nullptr;
    for (auto& [table, rows] : held) {
      held_.push_back(std::make_unique<EmbeddingTable::Rows>(table));
      rows = held_.back().get();
    }
    for (const EmbeddingPtr& each : tables_) rows_.push_back(held[each->table()]);
    return absl::OkStatus();
  }

  const EmbeddingTable::Rows& rows(int table) const { return *rows_[table]; }
  const Tensor& defaults(int table) const { return *defaults_[table]; }

 private:
  std::vector<EmbeddingPtr> tables_;
  std::vector<const Tensor*> defaults_;
  std::vector<std::unique_ptr<EmbeddingTable::Rows>> held_;
  std::vector<const EmbeddingTable::Rows*> rows_;  // of each table
};

// All keys of a feature, and where each example's begin.
struct Keys {
  std::vector<int64_t> keys;
  std::vector<int32_t> splits{0};
};

template <typename Id>
BlockState ReadKeys(const FeatureIds<Id>& in, Keys* out) {
  out->keys.clear();
  out->splits.assign(1, 0);
  out->keys.reserve(in.count + (in.fills ? in.examples : 0));
  out->splits.reserve(in.examples + 1);
  BlockRows block;
  const int64_t blocks = CountBlocks(in);
  for (int64_t b = 0; b < blocks; ++b) {
    const BlockState state = ReadBlock(in, b, &block);
    if (state != BlockState::kRead) return state;
    const int32_t before = out->splits.back();
    const auto first = block.rows.begin();
    out->keys.insert(out->keys.end(), first, first + block.splits.back());
    for (size_t e = 1; e < block.splits.size(); ++e) {
      out->splits.push_back(before + block.splits[e]);
    }
  }
  return BlockState::kRead;
}

template <typename Id>
class GroupedLookUpOp : public OpKernel {
 public:
  explicit GroupedLookUpOp(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, attributes_.Read(c));
    OP_REQUIRES_OK(c, c->GetAttr("read_only", &read_only_));
  }

  void Compute(OpKernelContext* c) override {
    KeyTables tables;
    OP_REQUIRES_OK(c, tables.Read(c, attributes_.dims()));
    int64_t step = kNoVersion;
    OP_REQUIRES_OK(c, ReadStep(c, &step));
    const std::vector<int64_t> any(attributes_.dims().size(),
                                   std::numeric_limits<int64_t>::max());
    Ids<Id> ids;
    OP_REQUIRES_OK(c, ids.Read(c, attributes_, any));
    Layout<float> out;
    OP_REQUIRES_OK(c, AllocateVectors(c, attributes_, ids, &out));
    int64_t cost = 0;
    for (int f = 0; f < attributes_.count(); ++f) {
      const int64_t dim = attributes_.dims()[attributes_.features()[f].table];
      cost += ids[f].count * (kFindKey + CostOfId(dim * sizeof(float)));
    }
    FirstError error;
    std::mutex mu;
    // A feature at a time: a thread never waits for another one while it holds rows.
    c->device()->tensorflow_cpu_worker_threads()->workers->ParallelFor(
        attributes_.count(), cost / attributes_.count(), [&](int64_t begin, int64_t end) {
          Keys keys;
          std::vector<const float*> vectors;
          for (int64_t f = begin; f < end; ++f) {
            const absl::Status read = ReadFeature(c, static_cast<int>(f), &ids, &mu, &keys);
            if (!read.ok()) return error.Found(f, read);
            LookUp(tables, static_cast<int>(f), step, keys, out, &vectors);
          }
        });
    OP_REQUIRES_OK(c, error.status());
  }

 private:
  static absl::Status ReadStep(OpKernelContext* c, int64_t* step) {
    OpInputList steps;
    TF_RETURN_IF_ERROR(c->input_list("step", &steps));
    if (steps.size() == 0) return absl::OkStatus();
    if (steps.size() > 1 || steps[0].dims() != 0) {
      return absl::InvalidArgumentError(absl::StrCat(steps.size(), " steps, the first of shape ",
                                                     steps[0].shape().DebugString(),
                                                     "; expected at most one scalar"));
    }
    *step = steps[0].scalar<int64_t>()();
    return absl::OkStatus();
  }

  absl::Status ReadFeature(OpKernelContext* c, int f, Ids<Id>* ids, std::mutex* mu,
                           Keys* keys) const {
    const Feature& feature = attributes_.features()[f];
    BlockState state = ReadKeys((*ids)[f], keys);
    if (state == BlockState::kUnordered) {
      // The temporary memory is the context's.
      const std::lock_guard<std::mutex> hold(*mu);
      TF_RETURN_IF_ERROR(ids->Order(c, attributes_, f));
      state = ReadKeys((*ids)[f], keys);
    }
    if (state == BlockState::kRead) return absl::OkStatus();
    return Wrong(feature, "a key, or the default id, is below 0");
  }

  void LookUp(const KeyTables& tables, int f, int64_t step, const Keys& keys,
              const Layout<float>& out, std::vector<const float*>* vectors) const {
    const Feature& feature = attributes_.features()[f];
    vectors->resize(std::max(vectors->size(), keys.keys.size()));
    LookupBatch batch;
    batch.keys = keys.keys.data();
    batch.count = static_cast<int64_t>(keys.keys.size());
    batch.default_rows = tables.defaults(feature.table).template flat<float>().data();
    batch.default_count = tables.defaults(feature.table).dim_size(0);
    batch.step = step;
    batch.read_only = read_only_;
    batch.rows = vectors->data();
    const EmbeddingTable::Rows& rows = tables.rows(feature.table);
    if (batch.count > 0) rows.Lookup(batch);
    LookedUp<float> in;
    in.vectors = vectors->data();
    in.dim = attributes_.dims()[feature.table];
    in.stride = out.strides[f];
    in.rows = static_cast<int64_t>(keys.splits.size()) - 1;
    in.splits = keys.splits.data();
    in.combiner = feature.combiner;
    rows.Read([&] { Combine(in, 0, in.rows, out.begins[f]); });
  }

  Attributes attributes_;
  bool read_only_ = false;
};

WORKBENCH_GROUPED_KERNEL("WorkbenchEmbeddingGroupedLookUp", float, int32_t,
                         GroupedLookUpOp<int32_t>);
WORKBENCH_GROUPED_KERNEL("WorkbenchEmbeddingGroupedLookUp", float, int64_t,
                         GroupedLookUpOp<int64_t>);

}  // namespace
}  // namespace workbench::grouped
