#include "cuda/rows/apply_inl.h"

#include <memory>
#include <random>
#include <vector>

#include "combine/combine.h"
#include "optimizer/row_updates.h"
#include "optimizer/update_rules.h"
#include "test/cuda/touched_rows.h"
#include "test/cuda/host_device.h"
#include "test/cuda/random_batch.h"
#include "test/support/check.h"

namespace workbench::cuda {
namespace {

// A rule as the device and as the CPU have it.
struct BothRules {
  RuleCall call;
  std::unique_ptr<UpdateRule> cpu;
  int slots = 0;
  bool by_row = false;
};

template <typename TheRule, typename... Members>
BothRules Make(Rule rule, int slots, std::vector<float> numbers, Members TheRule::*... members) {
  BothRules both;
  both.call.rule = rule;
  both.slots = slots;
  both.by_row = rule == Rule::kRowWiseAdagrad;
  std::copy(numbers.begin(), numbers.end(), both.call.numbers);
  auto made = std::make_unique<TheRule>();
  int at = 0;
  ((made.get()->*members = numbers[at++]), ...);
  both.cpu = std::move(made);
  return both;
}

std::vector<BothRules> AllRules() {
  std::vector<BothRules> all;
  all.push_back(Make<GradientDescentRule>(Rule::kGradientDescent, 0, {0.5f},
                                          &GradientDescentRule::learning_rate));
  all.push_back(Make<AdagradRule>(Rule::kAdagrad, 1, {0.5f, 1e-3f}, &AdagradRule::learning_rate,
                                  &AdagradRule::epsilon));
  all.push_back(Make<RowWiseAdagradRule>(Rule::kRowWiseAdagrad, 1, {0.5f, 1e-3f},
                                         &RowWiseAdagradRule::learning_rate,
                                         &RowWiseAdagradRule::epsilon));
  all.push_back(Make<AdamRule>(
      Rule::kAdam, 2, {0.81f, 0.98f, 0.5f, 0.9f, 0.99f, 1e-3f, 0.1f, 0.01f}, &AdamRule::beta1_power,
      &AdamRule::beta2_power, &AdamRule::learning_rate, &AdamRule::beta1, &AdamRule::beta2,
      &AdamRule::epsilon, &AdamRule::share1, &AdamRule::share2));
  for (float power : {-0.5f, -0.6f}) {
    all.push_back(Make<FtrlRule>(Rule::kFtrl, 2, {0.5f, 0.1f, 0.2f, 0.3f, power},
                                 &FtrlRule::learning_rate, &FtrlRule::l1, &FtrlRule::l2,
                                 &FtrlRule::l2_shrinkage, &FtrlRule::learning_rate_power));
  }
  return all;
}

// A copy of a table that the CPU changes, and the comparison with the table.
struct CpuTable {
  std::vector<float> values, slots[kMostSlots];
  DenseTable dense;

  CpuTable(const TableCall& table, const BothRules& rules) {
    const float* from = static_cast<const float*>(table.values);
    values.assign(from, from + table.rows * table.dim);
    dense.values = values.data();
    dense.dim = table.dim;
    dense.slot_count = rules.slots;
    for (int s = 0; s < rules.slots; ++s) {
      dense.slot_dims[s] = rules.by_row ? 1 : table.dim;
      slots[s].assign(table.slots[s], table.slots[s] + table.rows * table.dim);
      dense.slots[s] = slots[s].data();
    }
  }

  void CheckLike(const TableCall& table) const {
    const float* found = static_cast<const float*>(table.values);
    for (size_t i = 0; i < values.size(); ++i) CHECK(Near(found[i], values[i], 1e-4f));
    for (int s = 0; s < dense.slot_count; ++s) {
      for (size_t i = 0; i < slots[s].size(); ++i) {
        CHECK(Near(table.slots[s][i], slots[s][i], 1e-4f));
      }
    }
  }
};

template <typename Id>
void CheckGrouped(const BothRules& rules, int seeds, bool weighted) {
  for (int seed = 0; seed < seeds; ++seed) {
    std::mt19937_64 random(seed);
    RandomBatch<Id> batch(random, /*fills=*/true, weighted);
    std::vector<std::unique_ptr<CpuTable>> cpu;
    for (int t = 0; t < batch.call.table_count; ++t) {
      const TableCall& table = batch.tables[t];
      cpu.push_back(std::make_unique<CpuTable>(table, rules));
      const CpuTouched touched(batch, t);
      std::vector<float> sums(touched.rows.unique * table.dim);
      workbench::SumGradients(touched.ToSum(table.dim), 0, touched.rows.unique, sums.data());
      UpdateRows(*rules.cpu, cpu[t]->dense, touched.rows.rows.get(), sums.data(), 0,
                 touched.rows.unique);
    }
    HostDevice device;
    DeviceTouched touched(batch.call, Numbering::kNone);
    FindTouched<float, Id>(batch.call, Numbering::kNone, touched.memory.data(), &touched.touched, &device);
    Apply(batch.call, touched.touched, rules.call, &device);
    CHECK_EQ(batch.complaint, 0u);
    for (int t = 0; t < batch.call.table_count; ++t) cpu[t]->CheckLike(batch.tables[t]);
  }
}

TEST(UpdatesBehindALookUpAreThoseOfTheCpu) {
  for (const BothRules& rules : AllRules()) {
    for (bool weighted : {false, true}) {
      CheckGrouped<int64_t>(rules, 15, weighted);
      CheckGrouped<int32_t>(rules, 5, weighted);
    }
  }
}

TEST(MoreTablesThanAKernelTakesAreAllUpdated) {
  const std::vector<BothRules> all = AllRules();
  std::mt19937_64 random(5);
  RandomBatch<int64_t> batch;
  for (int t = 0; t < 150; ++t) batch.AddTable(random);
  for (int f = 0; f < 300; ++f) batch.AddFeature(random, true);
  batch.Finish();
  std::vector<std::unique_ptr<CpuTable>> cpu;
  for (int t = 0; t < 150; ++t) {
    const int64_t dim = batch.tables[t].dim;
    cpu.push_back(std::make_unique<CpuTable>(batch.tables[t], all[1]));
    const CpuTouched touched(batch, t);
    std::vector<float> sums(touched.rows.unique * dim);
    workbench::SumGradients(touched.ToSum(dim), 0, touched.rows.unique, sums.data());
    UpdateRows(*all[1].cpu, cpu[t]->dense, touched.rows.rows.get(), sums.data(), 0,
               touched.rows.unique);
  }
  HostDevice device;
  DeviceTouched touched(batch.call, Numbering::kNone);
  FindTouched<float, int64_t>(batch.call, Numbering::kNone, touched.memory.data(), &touched.touched, &device);
  Apply(batch.call, touched.touched, all[1].call, &device);
  for (int t = 0; t < 150; ++t) cpu[t]->CheckLike(batch.tables[t]);
}

// Rows that are named twice are changed twice.
void CheckRows(const BothRules& rules, std::mt19937_64& random) {
  RandomBatch<int64_t> batch;
  batch.AddTable(random);
  const TableCall& table = batch.tables[0];
  CpuTable cpu(table, rules);
  std::vector<int64_t> rows(random() % 60);
  for (int64_t& row : rows) row = random() % table.rows;
  RowsCall call;
  call.table = table;
  call.rows = rows.data();
  call.count = rows.size();
  call.complaint = &batch.complaint;
  call.gradients = batch.Floats(random, rows.size() * table.dim, random() % 2 == 0);
  Unordered from;
  uint64_t* keys = nullptr;
  int32_t* who = nullptr;
  std::vector<char> workspace(TakeRowsParts<HostDevice>(call, nullptr, &from, &keys, &who));
  HostDevice device;
  RowsApply(call, rules.call, workspace.data(), &device);
  CHECK_EQ(batch.complaint, 0u);
  UpdateRows(*rules.cpu, cpu.dense, rows.data(), call.gradients, 0, call.count);
  cpu.CheckLike(table);
}

TEST(UpdatesOfNamedRowsAreThoseOfTheCpu) {
  std::mt19937_64 random(9);
  for (const BothRules& rules : AllRules()) {
    for (int trial = 0; trial < 40; ++trial) CheckRows(rules, random);
  }
}

TEST(RowsOutsideTheTableStayAndAreNoted) {
  std::vector<float> values = {1, 2}, gradients = {10, 20, 30};
  const std::vector<int64_t> rows = {2, -1, 1};
  uint64_t complaint = 0;
  RowsCall call;
  call.table.values = values.data();
  call.table.rows = 2;
  call.table.dim = 1;
  call.rows = rows.data();
  call.gradients = gradients.data();
  call.count = 3;
  call.complaint = &complaint;
  RuleCall rule;
  rule.numbers[0] = 1;
  Unordered from;
  uint64_t* keys = nullptr;
  int32_t* who = nullptr;
  std::vector<char> workspace(TakeRowsParts<HostDevice>(call, nullptr, &from, &keys, &who));
  HostDevice device;
  RowsApply(call, rule, workspace.data(), &device);
  CHECK_EQ(values[0], 1.0f);
  CHECK_EQ(values[1], -28.0f);
  CHECK(ReadComplaint(complaint).what == IdFault::kNoSuchRow);
}

}  // namespace
}  // namespace workbench::cuda
