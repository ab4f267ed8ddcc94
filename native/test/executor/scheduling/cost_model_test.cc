#include "executor/scheduling/cost_model.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/support/check.h"

namespace workbench {
namespace {

using Costs = std::vector<int64_t>;
constexpr int64_t kUs = 1000;

// The ticks of a time in ns, give or take one.
uint64_t TicksOf(int64_t ns) { return uint64_t(double(ns) / NsPerTick() + 0.5); }

bool Near(int64_t found, int64_t expected) {
  return found >= expected - expected / 100 - 2 && found <= expected + expected / 100 + 2;
}

std::vector<CostedNode> Named(const std::vector<std::string>& names) {
  std::vector<CostedNode> nodes;
  for (const std::string& name : names) nodes.push_back({name, name.empty() ? "" : "Op", "cpu"});
  return nodes;
}

// a before b and c, both before d.
CostModel Diamond(const CostModel::Settings& settings) {
  return CostModel(settings, Named({"a", "b", "c", "d"}),
                   Dag(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}));
}

std::vector<std::string> Split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

// The table's rows, by columns.
std::vector<std::vector<std::string>> Rows() {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : Split(CostModel::Table(), '\n')) rows.push_back(Split(line, '\t'));
  rows.erase(rows.begin());
  return rows;
}

TEST(LearnsOnlyIfStartIsAboveZeroAndBelowStop) {
  for (const auto& [start, stop] : std::vector<std::pair<int64_t, int64_t>>{
           {0, 5}, {0, 0}, {-1, 3}, {3, 3}, {5, 3}, {1, 1}, {2, 0}}) {
    CostModel model = Diamond({start, stop, 5000, 100});
    for (int step = 0; step < 8; ++step) CHECK(!model.BeginStep());
    CHECK(model.learned() == nullptr);
    CHECK_EQ(Rows()[0][1], "0");
    CHECK_EQ(Rows()[0][2], "0");
  }
}

TEST(MeasuresFromStartUntilStop) {
  CostModel model = Diamond({3, 6, 5000, 100});
  const std::vector<bool> expected = {false, false, true, true, true, false, false, false};
  const std::vector<std::string> steps = {"0", "0", "1", "2", "3", "3", "3", "3"};
  for (size_t step = 0; step < expected.size(); ++step) {
    CHECK_EQ(model.BeginStep(), expected[step]);
    CHECK_EQ(model.learned() != nullptr, step >= 5);  // Known from the step STOP on, itself too.
    CHECK_EQ(Rows()[0][2], steps[step]);
  }
}

TEST(StartAtTheFirstStep) {
  CostModel model = Diamond({1, 2, 5000, 100});
  CHECK(model.BeginStep());
  CHECK(!model.BeginStep());
  CHECK(model.learned() != nullptr);
}

TEST(AveragesRunsNotSteps) {
  CostModel model = Diamond({1, 3, 5000, 100});
  CHECK(model.BeginStep());
  for (const int64_t us : {10, 20, 60}) model.Add(0, TicksOf(us * kUs));  // Thrice in one step.
  model.Add(1, TicksOf(5 * kUs));
  model.Add(2, TicksOf(100 * kUs));
  CHECK(model.BeginStep());
  model.Add(1, TicksOf(15 * kUs));
  CHECK(!model.BeginStep());
  const auto learned = model.learned();
  CHECK(Near(learned->average_ns[0], 30 * kUs));
  CHECK(Near(learned->average_ns[1], 10 * kUs));
  CHECK(Near(learned->average_ns[2], 100 * kUs));
  CHECK_EQ(learned->average_ns[3], 0);
  // Node 0 ran thrice in two steps; node 2 in one of them, and costs no less for that.
  const Costs& cost = learned->average_ns;
  CHECK(Near(learned->to_sink_ns[0], 45 * kUs + cost[2]));
  CHECK(Costs(learned->to_sink_ns.begin() + 1, learned->to_sink_ns.end()) ==
        Costs({cost[1], cost[2], 0}));
  CHECK(learned->slack_ns == Costs({0, cost[2] - cost[1], 0, 0}));
}

TEST(WhatComesTooLateChangesNothing) {
  CostModel model = Diamond({1, 2, 5000, 100});
  CHECK(model.BeginStep());
  model.Add(0, TicksOf(10 * kUs));
  CHECK(!model.BeginStep());
  const auto learned = model.learned();
  const Costs before = learned->average_ns;
  model.Add(0, TicksOf(1000 * kUs));
  CHECK(!model.BeginStep());
  CHECK(model.learned() == learned);
  CHECK(learned->average_ns == before);
}

TEST(AnExpensiveKernelThatNeverRanIsNotFree) {
  std::vector<CostedNode> nodes = Named({"never", "cheap", "ran"});
  nodes[0].expensive = nodes[2].expensive = true;
  CostModel model({1, 2, 7000, 100}, nodes, Dag(3, {}));
  CHECK(model.BeginStep());
  model.Add(2, TicksOf(3 * kUs));
  CHECK(!model.BeginStep());
  CHECK_EQ(model.learned()->average_ns[0], 7001);  // Never within a batch.
  CHECK_EQ(model.learned()->average_ns[1], 0);
  CHECK(Near(model.learned()->average_ns[2], 3 * kUs));
}

TEST(TheTableSaysAllThatIsKnown) {
  CostModel::Preload("");
  std::vector<CostedNode> nodes = {
      {"in", "Placeholder", "/cpu:0"}, {}, {"work/MatMul", "MatMul", "/cpu:0", true}};
  CostModel model({2, 4, 5000, 100}, nodes, Dag(3, {{0, 2}}));
  CHECK_EQ(Split(CostModel::Table(), '\n')[0],
           "executor\tlearned\tsteps\tnode\top\tdevice\tcount\taverage_ns\tcritical_path_ns\t"
           "slack_ns\tbatch\torder");
  // What has no name is no row.
  CHECK_EQ(Rows().size(), 2u);
  CHECK_HAS(CostModel::Table(), "\t0\t0\twork/MatMul\tMatMul\t/cpu:0\t0\t0\t0\t0\t-1\t\n");
  for (int step = 1; step < 5; ++step) {
    if (!model.BeginStep()) continue;
    model.Add(0, TicksOf(2 * kUs));
    model.Add(2, TicksOf(40 * kUs));
  }
  model.Scheduled(2, 7);
  const std::vector<std::string> first = Rows()[0], second = Rows()[1];
  CHECK_EQ(first.size(), 12u);
  CHECK_EQ(first[0], second[0]);
  CHECK_EQ(second[1], "1");
  CHECK_EQ(second[2], "2");
  CHECK_EQ(second[6], "2");
  CHECK(Near(std::stoll(second[7]), 40 * kUs));
  CHECK_EQ(std::stoll(first[8]), std::stoll(first[7]) + std::stoll(second[7]));
  CHECK_EQ(second[8], second[7]);
  CHECK_EQ(first[9], "0");
  CHECK_EQ(first[10], "-1");
  CHECK_EQ(second[10], "7");
  CHECK_EQ(second[11], "trying");
}

TEST(TheTableHasTheLiveModelsInOrder) {
  auto first = std::make_unique<CostModel>(CostModel::Settings{}, Named({"x"}), Dag(1, {}));
  CostModel second({}, Named({"y"}), Dag(1, {}));
  CostModel third({}, Named({"z"}), Dag(1, {}));
  CHECK_EQ(Rows().size(), 3u);
  CHECK_EQ(Rows()[0][3], "x");
  CHECK(std::stoi(Rows()[0][0]) < std::stoi(Rows()[1][0]));
  CHECK(std::stoi(Rows()[1][0]) < std::stoi(Rows()[2][0]));
  first.reset();
  CHECK_EQ(Rows().size(), 2u);
  CHECK_EQ(Rows()[0][3], "y");
}

// Ten nodes and a hole or more; `known` of them are preloaded.
std::unique_ptr<CostModel> WithPreloaded(int known, int holes = 0) {
  std::string lines;
  std::vector<std::string> names(10 + holes);
  for (int i = 0; i < 10; ++i) {
    names[i] = "n" + std::to_string(i);
    if (i < known) lines += names[i] + "\t" + std::to_string(100 * (i + 1)) + "\n";
  }
  CostModel::Preload(lines);
  auto model = std::make_unique<CostModel>(CostModel::Settings{0, 0, 5000, 100}, Named(names),
                                           Dag(10 + holes, {{8, 9}}));
  CostModel::Preload("");
  return model;
}

TEST(StartsWithPreloadedCostsIfItKnowsNineOfTen) {
  CHECK(WithPreloaded(8)->learned() == nullptr);
  CHECK(WithPreloaded(0)->learned() == nullptr);
  const auto model = WithPreloaded(9);
  const auto learned = model->learned();
  CHECK(learned->average_ns == Costs({100, 200, 300, 400, 500, 600, 700, 800, 900, 0}));
  CHECK_EQ(learned->to_sink_ns[8], 900);
  CHECK_EQ(learned->slack_ns[8], 0);
  CHECK_EQ(learned->slack_ns[0], 800);
  for (int step = 0; step < 5; ++step) CHECK(!model->BeginStep());
  CHECK_EQ(Rows()[0][1], "1");
  CHECK_EQ(Rows()[0][2], "0");
  CHECK_EQ(Rows()[0][6], "0");
}

TEST(WhatHasNoNameIsNeitherKnownNorUnknown) {
  CHECK(WithPreloaded(9, /*holes=*/30)->learned() != nullptr);
  CHECK(WithPreloaded(8, /*holes=*/30)->learned() == nullptr);
  CostModel::Preload("x\t5\n");
  CHECK(CostModel({}, Named({"", ""}), Dag(2, {})).learned() == nullptr);
  CHECK(CostModel({}, {}, Dag()).learned() == nullptr);
  CostModel::Preload("\t7\n");
  CHECK(CostModel({}, Named({"", ""}), Dag(2, {})).learned() == nullptr);
  CostModel::Preload("");
}

TEST(ReadsPreloadedCostsLineByLine) {
  CostModel::Preload("a\t12\nno number\nb\tmany\nc\t-5\nb\t7\tmany\nd\t40\t120");
  CostModel model({}, Named({"a", "c", "d"}), Dag(3, {}));
  CHECK(model.learned()->average_ns == Costs({12, 0, 40}));
  CHECK(model.learned()->to_sink_ns == Costs({12, 0, 120}));
  CHECK(CostModel({}, Named({"b"}), Dag(1, {})).learned() == nullptr);
  CostModel::Preload("a\t1\n");  // Replaces what was preloaded before.
  CHECK(CostModel({}, Named({"d"}), Dag(1, {})).learned() == nullptr);
  CHECK(model.learned()->average_ns == Costs({12, 0, 40}));
  CostModel::Preload("");
  CHECK(CostModel({}, Named({"a"}), Dag(1, {})).learned() == nullptr);
}

TEST(CostsAndBatchesBeyondAllBoundsDoNotOverflow) {
  const std::string most = std::to_string(INT64_MAX);
  CostModel::Preload("a\t" + most + "\nb\t" + most + "\t" + most +
                     "\nc\t1\nd\t99999999999999999999\nd\t" +
                  most + "\n");
  const CostModel model = Diamond({1, 2, INT64_MAX, INT64_MIN});
  CostModel::Preload("");
  const auto learned = model.learned();
  CHECK(learned != nullptr);
  for (int64_t ns : learned->average_ns) CHECK(ns > 0);
  CHECK_EQ(learned->to_sink_ns[0], 3 * learned->average_ns[0]);
  CHECK_EQ(learned->slack_ns[2], learned->average_ns[0] - 1);
  // What is reckoned from it has room, too.
  CHECK(model.settings().batch_ns > 0 && model.settings().batch_ns < INT64_MAX / 1'000'000);
  CHECK_EQ(model.settings().batch_ops, 1);
}

TEST(ReplacesPreloadedCostsByItsOwn) {
  CostModel::Preload("a\t77\n");
  CostModel model({1, 2, 5000, 100}, Named({"a"}), Dag(1, {}));
  CostModel::Preload("");
  CHECK(model.BeginStep());
  model.Add(0, TicksOf(9 * kUs));
  CHECK_EQ(model.learned()->average_ns[0], 77);
  CHECK(!model.BeginStep());
  CHECK(Near(model.learned()->average_ns[0], 9 * kUs));
}

TEST(LearnsAnewAndGoesByWhatItKnowsMeanwhile) {
  CostModel model({2, 3, 5000, 100}, Named({"a"}), Dag(1, {}));
  CHECK(!model.BeginStep());
  CHECK(model.BeginStep());
  model.Add(0, TicksOf(10 * kUs));
  CHECK(!model.BeginStep());
  CostModel::RelearnAll();
  CHECK_EQ(Rows()[0][1], "1");
  CHECK_EQ(Rows()[0][2], "0");
  CHECK_EQ(Rows()[0][6], "0");
  CHECK(!model.BeginStep());
  CHECK(Near(model.learned()->average_ns[0], 10 * kUs));
  CHECK(model.BeginStep());
  model.Add(0, TicksOf(50 * kUs));
  CHECK(Near(model.learned()->average_ns[0], 10 * kUs));
  CHECK(!model.BeginStep());
  CHECK(Near(model.learned()->average_ns[0], 50 * kUs));
}

TEST(LearnsAnewInTheMidstOfAStep) {
  CostModel model({1, 3, 5000, 100}, Named({"a"}), Dag(1, {}));
  CHECK(model.BeginStep());
  model.Add(0, TicksOf(10 * kUs));
  CostModel::RelearnAll();
  model.Add(0, TicksOf(30 * kUs));  // Of the step that was under way; counts, harmlessly.
  CHECK(model.BeginStep());
  CHECK(model.BeginStep());
  model.Add(0, TicksOf(50 * kUs));
  CHECK(!model.BeginStep());
  CHECK(Near(model.learned()->average_ns[0], 40 * kUs));
}

// Steps of one thread, while another has them learn anew at any moment: what is known is never less
// than a whole measurement.
TEST(LearningAnewNeverLeavesItWithNothing) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kTimes = 5'000;
#else
  constexpr int kTimes = 50'000;
#endif
  constexpr int kNodes = 50;
  constexpr int64_t kNs = 20 * kUs;
  CostModel model({1, 3, 5000, 100}, Named(std::vector<std::string>(kNodes, "n")),
                  Dag(kNodes, {}));
  std::atomic<bool> stop{false};
  std::thread relearn([&] {
    for (int i = 0; i < kTimes; ++i) {
      CostModel::RelearnAll();
      for (const uint64_t until = Ticks() + TicksOf(i % 16 * 500); Ticks() < until;) {
      }
    }
    stop.store(true);
  });
  const uint64_t ticks = TicksOf(kNs);
  std::shared_ptr<const CostModel::Learned> learned;
  for (int more = 4; more > 0; more -= stop.load() ? 1 : 0) {  // Some steps after the last time.
    if (model.BeginStep()) {
      for (int node = 0; node < kNodes; ++node) model.Add(node, ticks);
      continue;
    }
    const auto before = std::exchange(learned, model.learned());
    if (learned == before) continue;
    // A run may be half counted where it was told so in the midst of it.
    for (const int64_t ns : learned->average_ns) CHECK(ns > kNs / 4 && ns < kNs * 4);
  }
  relearn.join();
  CHECK(learned != nullptr);
}

using Order = OrderTrial::Order;
using Verdict = OrderTrial::Verdict;

// Steps that take so long in each order, until one is kept. Returns how many there were.
int Try(OrderTrial* trial, uint64_t by_cost, uint64_t as_ready) {
  int steps = 0;
  for (; trial->verdict() == Verdict::kTrying; ++steps) {
    const OrderTrial::Step step = trial->Next();
    if (step.timed) trial->Record(step.order, step.order == Order::kByCost ? by_cost : as_ready);
  }
  return steps;
}

TEST(TheOrderByCostIsKeptWhereItIsClearlyFaster) {
  OrderTrial better, worse, equal;
  CHECK_EQ(Try(&better, 900, 1000), int(OrderTrial::kSettling + 2 * OrderTrial::kSteps));
  CHECK(better.verdict() == Verdict::kByCost);
  CHECK(better.Next().order == Order::kByCost && !better.Next().timed);
  Try(&worse, 1000, 900);
  CHECK(worse.verdict() == Verdict::kAsReady);
  CHECK(worse.Next().order == Order::kAsReady && !worse.Next().timed);
  worse.Record(Order::kAsReady, 1'000'000);  // A step that began before comes late.
  CHECK(worse.verdict() == Verdict::kAsReady);
  Try(&equal, 995, 1000);  // Noise.
  CHECK(equal.verdict() == Verdict::kAsReady);
}

TEST(NeitherStallsNorBatchesOfTwoKindsDecide) {
  OrderTrial stalls;
  for (int i = 0; stalls.verdict() == Verdict::kTrying; ++i) {
    const OrderTrial::Step step = stalls.Next();
    const bool by_cost = step.order == Order::kByCost;
    if (step.timed) stalls.Record(step.order, by_cost && i % 6 == 4 ? 90'000 : by_cost ? 900 : 1000);
  }
  CHECK(stalls.verdict() == Verdict::kByCost);
  for (const int period : {2, 3, 4}) {
    OrderTrial batches;
    for (int i = 0; batches.verdict() == Verdict::kTrying; ++i) {
      const OrderTrial::Step step = batches.Next();
      const uint64_t batch = i % period == 0 ? 2000 : 1000;
      if (step.timed) batches.Record(step.order, step.order == Order::kByCost ? batch : batch * 1.1);
    }
    CHECK(batches.verdict() == Verdict::kByCost);
  }
}

TEST(StepsThatFailMakeATrialLongerAndNoMore) {
  OrderTrial trial;
  for (int i = 0; i < 500 && trial.verdict() == Verdict::kTrying; ++i) {
    const OrderTrial::Step step = trial.Next();
    if (step.timed && i % 3 > 0) trial.Record(step.order, step.order == Order::kByCost ? 5 : 4);
  }
  CHECK(trial.verdict() == Verdict::kAsReady);
}

TEST(LearningAnewTriesAnew) {
  CostModel model({1, 3, 5000, 100}, Named({"a"}), Dag(1, {}));
  for (int step = 0; step < 3; ++step) model.BeginStep();
  Try(&model.learned()->trial, 1000, 900);
  CHECK_EQ(Rows()[0].back(), "as ready");
  CostModel::RelearnAll();
  CHECK_EQ(Rows()[0].back(), "as ready");
  for (int step = 0; step < 3; ++step) model.BeginStep();
  CHECK_EQ(Rows()[0].back(), "trying");
}

TEST(StepsAtOnceAreCountedOnce) {
  constexpr int kThreads = 8, kSteps = 500;
  constexpr int64_t kNs = 20 * kUs;
  CostModel model({101, 2101, 5000, 100}, Named({"a", "b"}), Dag(2, {{0, 1}}));
  std::atomic<int> measured{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      const uint64_t ticks = TicksOf(kNs);
      for (int step = 0; step < kSteps; ++step) {
        const bool measure = model.BeginStep();
        const auto learned = model.learned();
        if (learned != nullptr) CHECK_EQ(learned->to_sink_ns.size(), 2u);
        if (!measure) continue;
        ++measured;
        model.Add(0, ticks);
        model.Add(1, 3 * ticks);
        model.Scheduled(1, step);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(measured.load(), 2000);
  CHECK(Near(model.learned()->average_ns[0], kNs));
  CHECK(Near(model.learned()->average_ns[1], 3 * kNs));
  CHECK_EQ(Rows()[0][6], "2000");
}

// All calls at once: what deadlocks or races shows here or under a sanitizer.
TEST(EverythingAtOnce) {
  CostModel model({2, 6, 5000, 100}, Named({"a", "b"}), Dag(2, {{0, 1}}));
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 400; ++round) {
        if (model.BeginStep()) model.Add(t % 2, 1000);
        const auto learned = model.learned();
        if (learned != nullptr) learned->trial.Record(learned->trial.Next().order, round);
        model.Scheduled(t % 2, round);
        if (t == 0) CostModel::RelearnAll();
        if (t == 1) CHECK_HAS(CostModel::Table(), "\ta\tOp\tcpu\t");
        if (t == 2) CostModel::Preload(round % 2 ? "a\t1\nb\t2\n" : "");
        if (t == 3) {
          CostModel other({1, 2, 5000, 100}, Named({"a", "b"}), Dag(2, {}));
          if (other.BeginStep()) other.Add(0, 10);
          other.BeginStep();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CostModel::Preload("");
}

}  // namespace
}  // namespace workbench
