#include "optimizer/rule_inputs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "optimizer/touched_updates_inl.h"

namespace workbench {
namespace {

using tensorflow::OpInputList;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using Device = Eigen::ThreadPoolDevice;

// As stock's SparseApplyAdagrad computes it, to the bit: 1 / √x and the reciprocal root of Eigen
// round differently, and training would drift apart.
struct StockAdagradRule : UpdateRule {
  float learning_rate = 0;
  void Update(int64_t dim, const float* grad, float* row, float* const* slots) const override {
    // Whole packets of TensorFlow's build have the reciprocal root, what is left of a row has not.
    const int64_t packed = dim - dim % kStockPacket;
    const Eigen::Map<const Eigen::ArrayXf> g(grad, packed);
    Eigen::Map<Eigen::ArrayXf> a(slots[0], packed), v(row, packed);
    a += g.square();
    v -= learning_rate * g * a.rsqrt();
    for (int64_t c = packed; c < dim; ++c) {
      slots[0][c] += grad[c] * grad[c];
      const float root = std::sqrt(slots[0][c]);
      // Stock has code of its own for tables of one column.
      const float step = learning_rate * grad[c];
      row[c] -= dim == 1 ? step / root : step * (1.0f / root);
    }
  }

  // Of whole packets; a function each, as in touched_updates.cc.
  template <int64_t kDim>
  void UpdateWidth(const TouchedRows<float>& in, const DenseTable& table, const int64_t* rows,
                   int64_t count, int64_t begin, int64_t end) const {
    static_assert(kDim % kStockPacket == 0);
    const float rate = learning_rate;
    UpdateTouchedOfWidth<ShortVector, kDim, 1>(
        in, table, rows, count, begin, end,
        [&](const float* grad, float* row, float* slot) WORKBENCH_INLINED {
          using Values = Eigen::Array<float, kDim, 1>;
          const Eigen::Map<const Values> g(grad);
          Eigen::Map<Values> a(slot), v(row);
          a += g.square();
          v -= rate * g * a.rsqrt();
        });
  }

  bool UpdateTouched(const TouchedRows<float>& in, const DenseTable& table, const int64_t* rows,
                   int64_t count, int64_t begin, int64_t end) const override {
    return AtUsualWidth(table.dim, [&](auto width) {
      UpdateWidth<decltype(width)::value>(in, table, rows, count, begin, end);
    });
  }

  static constexpr int64_t kStockPacket = 8;
};

// A rule whose members are the numbers, in this order.
template <typename Rule, auto... kMembers>
std::unique_ptr<UpdateRule> Make(const std::vector<float>& numbers) {
  auto rule = std::make_unique<Rule>();
  auto next = numbers.begin();
  ((rule.get()->*kMembers = *next++), ...);
  return rule;
}

// Stock's has no epsilon.
std::unique_ptr<UpdateRule> MakeAdagrad(const std::vector<float>& numbers) {
  if (numbers[1] == 0) {
    return Make<StockAdagradRule, &StockAdagradRule::learning_rate>(numbers);
  }
  return Make<AdagradRule, &AdagradRule::learning_rate, &AdagradRule::epsilon>(numbers);
}

template <bool kOfSquares>
std::unique_ptr<UpdateRule> MakeKerasAdam(const std::vector<float>& numbers) {
  using Rule = KerasAdamRule;
  auto rule = Make<Rule, &Rule::rate, &Rule::share1, &Rule::share2, &Rule::epsilon>(numbers);
  static_cast<Rule&>(*rule).of_squares = kOfSquares;
  return rule;
}

// Shorter names for the table below.
using Descent = GradientDescentRule;
using RowWise = RowWiseAdagradRule;
using OfSquares = AdagradOfSquaresRule;
using Adam = AdamRule;
using Decaying = DecayingAdamRule;
using Ftrl = FtrlRule;

constexpr RuleKind kKinds[] = {
    {"gradient_descent", 0, false, 1, false, Make<Descent, &Descent::learning_rate>},
    {"adagrad", 1, false, 2, false, MakeAdagrad},
    {"row_wise_adagrad", 1, true, 2, false,
     Make<RowWise, &RowWise::learning_rate, &RowWise::epsilon>},
    {"adam", 2, false, 8, false,
     Make<Adam, &Adam::beta1_power, &Adam::beta2_power, &Adam::learning_rate, &Adam::beta1,
          &Adam::beta2, &Adam::epsilon, &Adam::share1, &Adam::share2>},
    {"ftrl", 2, false, 5, false,
     Make<Ftrl, &Ftrl::learning_rate, &Ftrl::l1, &Ftrl::l2, &Ftrl::l2_shrinkage,
          &Ftrl::learning_rate_power>},
    {"decaying_adam", 2, false, 6, true,
     Make<Decaying, &Decaying::rate, &Decaying::beta1, &Decaying::beta2, &Decaying::epsilon,
          &Decaying::share1, &Decaying::share2>},
    {"adagrad_of_squares", 1, false, 2, false,
     Make<OfSquares, &OfSquares::learning_rate, &OfSquares::epsilon>},
    {"keras_adam", 2, false, 4, true, MakeKerasAdam<false>},
    {"keras_adam_of_squares", 2, false, 4, true, MakeKerasAdam<true>},
};

const char* TensorName(int i) { return i == 0 ? "the table" : "a slot of the table"; }

absl::Status CheckHeld(const RuleKind& kind, const std::vector<Tensor>& held) {
  const TensorShape& shape = held[0].shape();
  for (size_t i = 0; i < held.size(); ++i) {
    if (!held[i].IsInitialized()) {
      return absl::FailedPreconditionError(
          absl::StrCat(TensorName(i), " is not initialized; run its initializer first"));
    }
    const bool by_row = i > 0 && kind.slots_by_row;
    if (held[i].dtype() != tensorflow::DT_FLOAT || shape.dims() < 1 ||
        held[i].shape() != (by_row ? TensorShape({shape.dim_size(0)}) : shape)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "table and slots have shapes ", shape.DebugString(), " and ",
          held[i].shape().DebugString(), "; expected float32 [rows, …] of the table",
          kind.slots_by_row ? " and [rows] of slots" : " and as many of slots"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RuleOf(OpKernelConstruction* c, int64_t tables, const RuleKind** kind) {
  std::string name;
  int slots = 0, scalars = 0;
  TF_RETURN_IF_ERROR(c->GetAttr("rule", &name));
  TF_RETURN_IF_ERROR(c->GetAttr("S", &slots));
  TF_RETURN_IF_ERROR(c->GetAttr("K", &scalars));
  const auto* found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                   [&](const RuleKind& each) { return name == each.name; });
  if (found == std::end(kKinds)) {
    return absl::InvalidArgumentError(absl::StrCat("rule is '", name, "', which is none"));
  }
  if (slots != found->slots * tables || scalars != found->scalars) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rule '", name, "' is given ", slots, " slots and ", scalars, " scalars; expected ",
        found->slots * tables, " and ", found->scalars));
  }
  *kind = found;
  return absl::OkStatus();
}

absl::Status ReadScalars(OpKernelContext* c, std::vector<float>* numbers) {
  OpInputList scalars;
  TF_RETURN_IF_ERROR(c->input_list("scalars", &scalars));
  for (const Tensor& each : scalars) {
    if (each.dims() != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "one of scalars has shape ", each.shape().DebugString(), "; expected []"));
    }
    numbers->push_back(each.scalar<float>()());
  }
  return absl::OkStatus();
}

absl::Status ReadRule(OpKernelContext* c, const RuleKind& kind, std::unique_ptr<UpdateRule>* rule) {
  std::vector<float> numbers;
  TF_RETURN_IF_ERROR(ReadScalars(c, &numbers));
  *rule = kind.make(numbers);
  return absl::OkStatus();
}

absl::Status RequireFloats(OpKernelContext* c, const std::vector<int>& inputs, int tables) {
  for (int input : inputs) {
    if (c->input_dtype(input) != tensorflow::DT_RESOURCE) continue;
    for (const auto& held : HandleFromInput(c, input).dtypes_and_shapes()) {
      if (held.dtype == tensorflow::DT_FLOAT) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          TensorName(input < tables ? 0 : 1), " is of type ", tensorflow::DataTypeString(held.dtype),
          "; expected float32 of all"));
    }
  }
  return absl::OkStatus();
}

absl::Status HeldTables::Hold(OpKernelContext* c, const RuleKind& kind, int tables,
                              bool use_locking) {
  std::vector<int> all((1 + kind.slots) * tables);
  std::iota(all.begin(), all.end(), 0);
  TF_RETURN_IF_ERROR(RequireFloats(c, all, tables));
  // Sparse: a variable that others read by value is copied once, not at every step.
  locks_.emplace(tensorflow::MaybeLockVariableInputMutexesInOrder<Device, float>(
      c, use_locking, /*sparse=*/true, all));
  tables_.resize(tables);
  for (int t = 0; t < tables; ++t) {
    std::vector<int> own = {t};
    for (int s = 0; s < kind.slots; ++s) own.push_back(tables + t * kind.slots + s);
    TF_RETURN_IF_ERROR(tables_[t].Read(c, kind, own, use_locking));
  }
  return absl::OkStatus();
}

absl::Status HeldTable::Read(OpKernelContext* c, const RuleKind& kind,
                             const std::vector<int>& inputs, bool use_locking) {
  held_.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    TF_RETURN_IF_ERROR((tensorflow::GetInputTensorFromVariable<Device, float>(
        c, inputs[i], use_locking, /*sparse=*/true, &held_[i])));
  }
  TF_RETURN_IF_ERROR(CheckHeld(kind, held_));
  table_.values = held_[0].flat<float>().data();
  table_.dim = rows() == 0 ? 0 : held_[0].NumElements() / rows();
  table_.slot_count = kind.slots;
  for (int s = 0; s < kind.slots; ++s) {
    table_.slots[s] = held_[s + 1].flat<float>().data();
    table_.slot_dims[s] = kind.slots_by_row ? 1 : table_.dim;
  }
  return absl::OkStatus();
}

}  // namespace workbench
