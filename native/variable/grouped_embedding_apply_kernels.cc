// The kernel of the gradient of a grouped lookup in EmbeddingVariables with an optimizer's update in
// it, see grouped_embedding_ops.cc.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "combine/combine.h"
#include "lookup/grouped/touched_tables.h"
#include "lookup/grouped/grouped_inputs.h"
#include "optimizer/rule_inputs.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "variable/held_embeddings.h"
#include "variable/variable_rules.h"

namespace workbench::grouped {
namespace {

using tensorflow::OpInputList;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

using MakeRule = std::unique_ptr<UpdateRule> (*)(const float* scalars);

template <typename Rule>
std::unique_ptr<UpdateRule> Made(const float* scalars) {
  auto rule = std::make_unique<Rule>();
  Take(scalars, rule.get());
  return rule;
}

struct Kind {
  const char* name;
  int slots;
  int scalars;
  MakeRule make;
};

constexpr Kind kKinds[] = {{"gradient_descent", 0, 1, Made<GradientDescentRule>},
                           {"adagrad", 1, 1, Made<AdagradRule>},
                           {"adam", 2, 6, Made<AdamRule>},
                           {"ftrl", 2, 5, Made<FtrlRule>}};

template <typename Id>
class GroupedApplyOp : public OpKernel {
 public:
  explicit GroupedApplyOp(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, attributes_.Read(c));
    std::string rule;
    int scalars = 0;
    OP_REQUIRES_OK(c, c->GetAttr("rule", &rule));
    OP_REQUIRES_OK(c, c->GetAttr("K", &scalars));
    OP_REQUIRES_OK(c, ReadSlots(c));
    kind_ = std::find_if(std::begin(kKinds), std::end(kKinds),
                         [&](const Kind& each) { return rule == each.name; });
    const size_t slots = kind_->slots * attributes_.dims().size();
    OP_REQUIRES(c, slots_.size() == slots && scalars == kind_->scalars,
                absl::InvalidArgumentError(absl::StrCat(
                    "rule '", rule, "' is given ", slots_.size(), " slots and ", scalars,
                    " scalars; expected ", slots, " and ", kind_->scalars)));
    OP_REQUIRES_OK(c, ReadColumns(c, attributes_, &columns_));
  }

  void Compute(OpKernelContext* c) override {
    std::unique_ptr<UpdateRule> rule;
    OP_REQUIRES_OK(c, ReadRule(c, &rule));
    HeldEmbeddings tables;
    OP_REQUIRES_OK(c, tables.Find(c, attributes_.dims()));
    OP_REQUIRES_OK(c, CheckDifferent(tables));
    std::vector<std::vector<int>> slots;
    OP_REQUIRES_OK(c, FindSlots(tables, &slots));
    Ids<Id> ids;
    OP_REQUIRES_OK(c, ReadChecked(c, attributes_, &ids));
    tables.Hold();
    FoundRows found;
    std::vector<std::vector<int64_t>> memory;
    OP_REQUIRES_OK(c, ReadFound(c, tables, &ids, &found, &memory));
    std::vector<TouchedTable<float>> touched;
    OP_REQUIRES_OK(c, (ReadTouched<float, Id>(c, attributes_, &columns_, &found, &ids, &touched)));
    ByRowsOfTables(c, touched, (kind_->slots + 1) * kFarRow,
                   [&](size_t t, int64_t begin, int64_t end) {
                     const EmbeddingRows& rows = tables.rows(static_cast<int>(t));
                     rows.Changing([&] { Apply(touched[t], *rule, rows, slots[t], begin, end); });
                   });
  }

 private:
  absl::Status ReadSlots(OpKernelConstruction* c) {
    NamedSlots named;
    named.Read(c);
    slots_ = named.slots();
    return c->status();
  }

  absl::Status ReadRule(OpKernelContext* c, std::unique_ptr<UpdateRule>* rule) const {
    std::vector<float> numbers;
    TF_RETURN_IF_ERROR(ReadScalars(c, &numbers));
    *rule = kind_->make(numbers.data());
    return absl::OkStatus();
  }

  absl::Status CheckDifferent(const HeldEmbeddings& tables) const {
    std::set<const EmbeddingResource*> known;
    for (size_t t = 0; t < attributes_.dims().size(); ++t) {
      const EmbeddingResource* each = tables.resource(static_cast<int>(t));
      if (known.insert(each).second) continue;
      return absl::InvalidArgumentError(absl::StrCat("EmbeddingVariable '", each->name(),
                                                     "' is given twice; expected each once"));
    }
    return absl::OkStatus();
  }

  // The numbers of each table's slots. Before tables are held: what is new needs them alone.
  absl::Status FindSlots(const HeldEmbeddings& tables,
                         std::vector<std::vector<int>>* numbers) const {
    numbers->resize(attributes_.dims().size());
    auto next = slots_.begin();
    for (size_t t = 0; t < numbers->size(); ++t, next += kind_->slots) {
      EmbeddingResource* resource = tables.resource(static_cast<int>(t));
      TF_RETURN_IF_ERROR(
          FindSlotsOf(resource, std::vector<Slot>(next, next + kind_->slots), &(*numbers)[t]));
    }
    return absl::OkStatus();
  }

  // The rows that the lookup found, where they are still there, else those that its keys have now.
  absl::Status ReadFound(OpKernelContext* c, const HeldEmbeddings& tables, Ids<Id>* ids,
                         FoundRows* found, std::vector<std::vector<int64_t>>* memory) const {
    OpInputList rows, generations;
    TF_RETURN_IF_ERROR(c->input_list("found_rows", &rows));
    TF_RETURN_IF_ERROR(c->input_list("generations", &generations));
    for (int f = 0; f < attributes_.count(); ++f) {
      const Feature& feature = attributes_.features()[f];
      const Tensor& generation = generations[feature.table];
      if (generation.dims() != 0 || rows[f].NumElements() != MostIds((*ids)[f])) {
        return FeatureError(feature, absl::StrCat("found_rows ", rows[f].shape().DebugString(),
                                           " of generation ", generation.shape().DebugString(),
                                           "; expected [", MostIds((*ids)[f]), "] and []"));
      }
      const EmbeddingRows& table = tables.rows(feature.table);
      if (generation.scalar<int64_t>()() == table.generation()) {
        found->push_back(rows[f].flat<int64_t>().data());
        continue;
      }
      memory->emplace_back(MostIds((*ids)[f]));
      found->push_back(memory->back().data());
      TF_RETURN_IF_ERROR(FindAgain(c, table, f, ids, memory->back().data()));
    }
    return absl::OkStatus();
  }

  absl::Status FindAgain(OpKernelContext* c, const EmbeddingRows& table, int f, Ids<Id>* ids,
                         int64_t* found) const {
    BlockRows rows;
    for (int64_t b = 0; b < CountBlocks((*ids)[f]); ++b) {
      const BlockState state = ReadBlock((*ids)[f], b, &rows);
      if (state == BlockState::kUnordered) {
        TF_RETURN_IF_ERROR(ids->Order(c, attributes_, f));
        return FindAgain(c, table, f, ids, found);
      }
      if (state == BlockState::kNoSuchRow) {
        return BelowZero(attributes_.features()[f]);
      }
      KeyBatch batch;
      batch.keys = rows.rows.data();
      batch.count = rows.splits.back();
      batch.read_only = true;
      table.Reading([&] { table.Find(batch, found + PlaceOf((*ids)[f], rows), nullptr); });
    }
    return absl::OkStatus();
  }

  // Changes the rows [begin, end) of those that were asked for.
  static void Apply(const TouchedTable<float>& touched, const UpdateRule& rule,
                    const EmbeddingRows& rows, const std::vector<int>& slots, int64_t begin,
                    int64_t end) {
    const int64_t at_once = SummedAtOnce(touched.dim);
    const TouchedRows<float> in = touched.ToSum();
    const std::unique_ptr<float[]> sums = Unset<float>(at_once * touched.dim);
    RowPlace places[kMostSummed];
    for (int64_t first = begin; first < end; first += at_once) {
      const int64_t count = std::min(at_once, end - first);
      rows.Places(touched.rows.rows.get() + first, count, slots, places);
      SumGradients(in, first, first + count, sums.get());
      for (int64_t i = 0; i < count; ++i) {
        if (places[i].values == nullptr) continue;
        rule.Update(touched.dim, sums.get() + i * touched.dim, places[i].values, places[i].slots);
      }
    }
  }

  Attributes attributes_;
  const Kind* kind_ = nullptr;
  std::vector<int64_t> columns_;
  std::vector<Slot> slots_;
};

WORKBENCH_GROUPED_KERNEL("WorkbenchEmbeddingGroupedApply", float, int32_t,
                         GroupedApplyOp<int32_t>);
WORKBENCH_GROUPED_KERNEL("WorkbenchEmbeddingGroupedApply", float, int64_t,
                         GroupedApplyOp<int64_t>);

}  // namespace
}  // namespace workbench::grouped
