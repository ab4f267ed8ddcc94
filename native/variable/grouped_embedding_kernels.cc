// The kernel of a grouped lookup in EmbeddingVariables, see grouped_embedding_ops.cc.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "combine/combine.h"
#include "lookup/grouped/touched_tables.h"
#include "lookup/grouped/grouped_inputs.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "threading/intra_op_threads.h"
#include "variable/held_embeddings.h"

namespace workbench::grouped {
namespace {

using tensorflow::OpInputList;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::OpOutputList;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// Nanoseconds until a key is found, of many at a time.
constexpr int64_t kFindKey = 20;

// What became of a block.
enum class State : uint8_t { kDone, kUnordered, kMissing };

// A run of the op.
template <typename Id>
struct Run {
  HeldEmbeddings tables;
  Ids<Id> ids;
  Layout<float> out;
  std::vector<const Tensor*> defaults;  // of each table
  std::vector<int64_t*> found;          // of each feature
  int64_t step = kNoVersion;
};

template <typename Id>
class GroupedLookUpOp : public OpKernel {
 public:
  explicit GroupedLookUpOp(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, attributes_.Read(c));
    OP_REQUIRES_OK(c, c->GetAttr("read_only", &read_only_));
    for (const Feature& each : attributes_.features()) {
      OP_REQUIRES(c, each.weights < 0 && each.max_norm < 0,
                  FeatureError(each, "weights or max_norm; expected none in an EmbeddingVariable"));
    }
  }

  void Compute(OpKernelContext* c) override {
    Run<Id> run;
    OP_REQUIRES_OK(c, run.tables.Find(c, attributes_.dims()));
    OP_REQUIRES_OK(c, ReadOptions(c, &run));
    OP_REQUIRES_OK(c, ReadChecked(c, attributes_, &run.ids));
    OP_REQUIRES_OK(c, AllocateVectors(c, attributes_, run.ids, &run.out));
    OP_REQUIRES_OK(c, AllocateFound(c, &run));
    run.tables.Hold();
    OP_REQUIRES_OK(c, SetGenerations(c, run));
    std::vector<Block> blocks = AllBlocks(run.ids, attributes_.count());
    std::vector<State> states;
    OP_REQUIRES_OK(c, LookUp(c, run, blocks, read_only_, &states));
    OP_REQUIRES_OK(c, Order(c, &run, &blocks, &states));
    if (std::find(states.begin(), states.end(), State::kMissing) == states.end()) return;
    blocks = AddRows(c, run, blocks, states);
    OP_REQUIRES_OK(c, LookUp(c, run, blocks, true, &states));
  }

 private:
  absl::Status ReadOptions(OpKernelContext* c, Run<Id>* run) const {
    OpInputList defaults, steps;
    TF_RETURN_IF_ERROR(c->input_list("default_rows", &defaults));
    for (int t = 0; t < defaults.size(); ++t) {
      TF_RETURN_IF_ERROR(CheckDefaultRows(*run->tables.resource(t), defaults[t]));
      run->defaults.push_back(&defaults[t]);
    }
    TF_RETURN_IF_ERROR(c->input_list("step", &steps));
    if (steps.size() == 0) return absl::OkStatus();
    if (steps.size() > 1 || steps[0].dims() != 0) {
      return absl::InvalidArgumentError(absl::StrCat(steps.size(), " steps, the first of shape ",
                                                     steps[0].shape().DebugString(),
                                                     "; expected at most one scalar"));
    }
    run->step = steps[0].scalar<int64_t>()();
    return absl::OkStatus();
  }

  absl::Status AllocateFound(OpKernelContext* c, Run<Id>* run) const {
    OpOutputList outputs;
    TF_RETURN_IF_ERROR(c->output_list("found_rows", &outputs));
    for (int f = 0; f < attributes_.count(); ++f) {
      const int64_t most = MostIds(run->ids[f]);
      Tensor* each = nullptr;
      TF_RETURN_IF_ERROR(outputs.allocate(f, TensorShape({most}), &each));
      run->found.push_back(each->flat<int64_t>().data());
    }
    return absl::OkStatus();
  }

  static absl::Status SetGenerations(OpKernelContext* c, const Run<Id>& run) {
    OpOutputList outputs;
    TF_RETURN_IF_ERROR(c->output_list("generations", &outputs));
    for (int t = 0; t < outputs.size(); ++t) {
      Tensor* each = nullptr;
      TF_RETURN_IF_ERROR(outputs.allocate(t, TensorShape({}), &each));
      each->scalar<int64_t>()() = run.tables.rows(t).generation();
    }
    return absl::OkStatus();
  }

  // Looks blocks up. Unless keys without a row are `final`, their blocks are left for AddRows.
  absl::Status LookUp(OpKernelContext* c, const Run<Id>& run, const std::vector<Block>& blocks,
                      bool final, std::vector<State>* states) const {
    const int64_t number = static_cast<int64_t>(blocks.size());
    states->assign(number, State::kDone);
    int64_t cost = 0;
    for (int f = 0; f < attributes_.count(); ++f) {
      const int64_t dim = attributes_.dims()[attributes_.features()[f].table];
      cost += run.ids[f].count * (kFindKey + CostOfId(dim * sizeof(float)));
    }
    FirstError error;
    ByCost(c, number, cost, [&](int64_t begin, int64_t end) {
          BlockRows rows;
          std::vector<const float*> vectors;
          for (int64_t b = begin; b < end; ++b) {
            const int f = blocks[b].feature;
            const BlockState state = ReadBlock(run.ids[f], blocks[b].number, &rows);
            if (state == BlockState::kNoSuchRow) {
              error.Found(b, BelowZero(attributes_.features()[f]));
            } else if (state == BlockState::kUnordered) {
              (*states)[b] = State::kUnordered;
            } else if (!LookUpBlock(run, f, rows, final, &vectors)) {
              (*states)[b] = State::kMissing;
            }
          }
        });
    return error.status();
  }

  KeyBatch KeysOf(const Run<Id>& run, int f, const BlockRows& rows) const {
    const Tensor& defaults = *run.defaults[attributes_.features()[f].table];
    KeyBatch batch;
    batch.keys = rows.rows.data();
    batch.count = rows.splits.back();
    batch.step = run.step;
    batch.read_only = read_only_;
    batch.default_rows = defaults.flat<float>().data();
    batch.default_count = defaults.dim_size(0);
    return batch;
  }

  // False, and nothing is set, where keys have no row and that is not final.
  bool LookUpBlock(const Run<Id>& run, int f, const BlockRows& rows, bool final,
                   std::vector<const float*>* vectors) const {
    const Feature& feature = attributes_.features()[f];
    const KeyBatch batch = KeysOf(run, f, rows);
    vectors->resize(std::max<size_t>(vectors->size(), batch.count));
    LookedUp<float> in;
    in.vectors = vectors->data();
    in.dim = attributes_.dims()[feature.table];
    in.stride = run.out.strides[f];
    in.rows = rows.end - rows.begin;
    in.splits = rows.splits.data();
    in.combiner = feature.combiner;
    int64_t* const found = run.found[f] + PlaceOf(run.ids[f], rows);
    bool done = false;
    const EmbeddingRows& table = run.tables.rows(feature.table);
    table.Reading([&] {
      done = table.Find(batch, found, vectors->data()) == 0 || final;
      if (done) Combine(in, 0, in.rows, run.out.begins[f] + rows.begin * in.stride);
    });
    return done;
  }

  // Brings ids into order that are not, and looks those features up; they have other blocks then.
  absl::Status Order(OpKernelContext* c, Run<Id>* run, std::vector<Block>* blocks,
                     std::vector<State>* states) const {
    std::vector<bool> unordered(attributes_.count(), false);
    for (size_t b = 0; b < blocks->size(); ++b) {
      if ((*states)[b] == State::kUnordered) unordered[(*blocks)[b].feature] = true;
    }
    if (std::find(unordered.begin(), unordered.end(), true) == unordered.end()) {
      return absl::OkStatus();
    }
    std::vector<Block> again;
    for (int f = 0; f < attributes_.count(); ++f) {
      if (!unordered[f]) continue;
      TF_RETURN_IF_ERROR(run->ids.Order(c, attributes_, f));
      for (int64_t b = 0; b < CountBlocks(run->ids[f]); ++b) again.push_back({f, b});
    }
    std::vector<State> found;
    TF_RETURN_IF_ERROR(LookUp(c, *run, again, read_only_, &found));
    for (size_t b = 0; b < blocks->size(); ++b) {
      if (unordered[(*blocks)[b].feature]) continue;
      again.push_back((*blocks)[b]);
      found.push_back((*states)[b]);
    }
    *blocks = std::move(again);
    *states = std::move(found);
    return absl::OkStatus();
  }

  // Adds the rows that blocks miss, and returns these. The order of new rows depends on no thread.
  std::vector<Block> AddRows(OpKernelContext* c, const Run<Id>& run,
                             const std::vector<Block>& blocks,
                             const std::vector<State>& states) const {
    std::vector<Block> missing;
    std::vector<std::vector<Block>> of_table(attributes_.dims().size());
    for (size_t b = 0; b < blocks.size(); ++b) {
      if (states[b] != State::kMissing) continue;
      missing.push_back(blocks[b]);
      of_table[attributes_.features()[blocks[b].feature].table].push_back(blocks[b]);
    }
    const int64_t tables = static_cast<int64_t>(of_table.size());
    const int64_t threads = WorthThreads(c, tables * kMostBlockIds * 10 * kFindKey);
    ByRanges(threads, tables, 1, [&](int64_t begin, int64_t end) {
          BlockRows rows;
          for (int64_t t = begin; t < end; ++t) {
            for (const Block& block : of_table[t]) {
              ReadBlock(run.ids[block.feature], block.number, &rows);
              run.tables.rows(static_cast<int>(t)).Add(KeysOf(run, block.feature, rows));
            }
          }
        });
    return missing;
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
