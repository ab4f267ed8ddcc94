#include "executor/scheduling/cost_model.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>
#include <system_error>
#include <unordered_map>
#include <utility>

namespace workbench {
namespace {

// A model starts with preloaded costs if at least this share of its nodes has one.
constexpr double kMinPreloadedShare = 0.9;

// 17 minutes; no kernel takes longer. Keeps sums over all nodes of a graph far from overflow.
constexpr int64_t kMostNs = 1'000'000'000'000;

CostModel::Settings InRange(CostModel::Settings settings) {
  settings.batch_ns = std::clamp<int64_t>(settings.batch_ns, 1, kMostNs);
  settings.batch_ops = std::max<int64_t>(1, settings.batch_ops);
  return settings;
}

// All models of the process, and the costs with which later models start.
struct Models {
  std::mutex mu;
  int next_number WORKBENCH_GUARDED_BY(mu) = 0;
  std::set<CostModel*> live WORKBENCH_GUARDED_BY(mu);
  std::unordered_map<std::string, CostModel::Cost> preloaded WORKBENCH_GUARDED_BY(mu);

  static Models& Get() {
    static Models* models = new Models();
    return *models;
  }
};

int NextNumber() {
  Models& models = Models::Get();
  std::lock_guard<std::mutex> lock(models.mu);
  return models.next_number++;
}

const char* NameOf(OrderTrial::Verdict verdict) {
  switch (verdict) {
    case OrderTrial::Verdict::kByCost:
      return "by cost";
    case OrderTrial::Verdict::kAsReady:
      return "as ready";
    default:
      return "trying";
  }
}

// Reads the number between `begin` and the next tab or the end, clamped to [0, kMostNs]; moves
// `begin` behind the tab.
bool ReadNumber(const std::string& line, size_t* begin, int64_t* number) {
  const size_t end = std::min(line.find('\t', *begin), line.size());
  const auto read = std::from_chars(line.data() + *begin, line.data() + end, *number);
  if (read.ec != std::errc() || read.ptr != line.data() + end) return false;
  *begin = std::min(end + 1, line.size());
  *number = std::clamp<int64_t>(*number, 0, kMostNs);
  return true;
}

}  // namespace

CostModel::CostModel(const Settings& settings, std::vector<CostedNode> nodes, Dag dag)
    : settings_(InRange(settings)),
      number_(NextNumber()),
      nodes_(std::move(nodes)),
      dag_(std::move(dag)),
      sums_(nodes_.size()),
      batches_(nodes_.size()) {
  for (auto& batch : batches_) batch.store(-1, std::memory_order_relaxed);
  StartWithPreloaded();
  Models& models = Models::Get();
  std::lock_guard<std::mutex> lock(models.mu);
  models.live.insert(this);
}

CostModel::~CostModel() {
  Models& models = Models::Get();
  std::lock_guard<std::mutex> lock(models.mu);
  models.live.erase(this);
}

bool CostModel::BeginStep() {
  if (!learns()) return false;
  const int64_t step = steps_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (step == settings_.stop_step) Learn();
  return step >= settings_.start_step && step < settings_.stop_step;
}

void CostModel::Learn() {
  const double ns_per_tick = NsPerTick();
  const double steps = double(settings_.stop_step - settings_.start_step);
  std::vector<Cost> costs(nodes_.size());
  {
    std::lock_guard<std::mutex> lock(mu_);
    // RelearnAll came in between: the sums are gone.
    if (steps_.load(std::memory_order_relaxed) < settings_.stop_step) return;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const int64_t count = sums_[i].count.load(std::memory_order_relaxed);
      if (count > 0) {
        const double ns = double(sums_[i].ticks.load(std::memory_order_relaxed)) * ns_per_tick;
        costs[i].average_ns = int64_t(ns / count);
        // Averaged over the steps that ran the node, not over those that took another branch.
        costs[i].per_step_ns = int64_t(ns / count * std::max(1.0, count / steps));
      } else if (nodes_[i].expensive) {
        costs[i] = {settings_.batch_ns + 1, settings_.batch_ns + 1};
      }
    }
  }
  Publish(costs);
}

void CostModel::Publish(const std::vector<Cost>& costs) {
  auto learned = std::make_shared<Learned>();
  std::vector<int64_t> per_step_ns;
  for (const Cost& cost : costs) {
    learned->average_ns.push_back(cost.average_ns);
    per_step_ns.push_back(cost.per_step_ns);
  }
  LongestPaths paths = FindLongestPaths(dag_, per_step_ns);
  learned->slack_ns.resize(costs.size());
  for (size_t i = 0; i < costs.size(); ++i) learned->slack_ns[i] = paths.Slack(i, per_step_ns[i]);
  learned->to_sink_ns = std::move(paths.to_sink);
  std::lock_guard<std::mutex> lock(mu_);
  learned_ = std::move(learned);
}

void CostModel::StartWithPreloaded() {
  std::vector<Cost> costs(nodes_.size());
  size_t named = 0, known = 0;
  {
    Models& models = Models::Get();
    std::lock_guard<std::mutex> lock(models.mu);
    if (models.preloaded.empty()) return;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].name.empty()) continue;
      ++named;
      const auto found = models.preloaded.find(nodes_[i].name);
      if (found == models.preloaded.end()) continue;
      costs[i] = found->second;
      ++known;
    }
  }
  if (known > 0 && double(known) >= kMinPreloadedShare * double(named)) Publish(costs);
}

std::shared_ptr<const CostModel::Learned> CostModel::learned() const {
  std::lock_guard<std::mutex> lock(mu_);
  return learned_;
}

std::string CostModel::Rows() const {
  const std::shared_ptr<const Learned> known = learned();
  const int64_t steps = std::clamp<int64_t>(
      steps_.load(std::memory_order_relaxed) - settings_.start_step + 1, 0,
      learns() ? settings_.stop_step - settings_.start_step : 0);
  const char* order = known ? NameOf(known->trial.verdict()) : "";
  std::ostringstream rows;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const CostedNode& node = nodes_[i];
    if (node.name.empty()) continue;
    rows << number_ << '\t' << (known != nullptr) << '\t' << steps << '\t' << node.name << '\t'
         << node.op << '\t' << node.device << '\t'
         << sums_[i].count.load(std::memory_order_relaxed) << '\t'
         << (known ? known->average_ns[i] : 0) << '\t' << (known ? known->to_sink_ns[i] : 0) << '\t'
         << (known ? known->slack_ns[i] : 0) << '\t'
         << batches_[i].load(std::memory_order_relaxed) << '\t' << order << '\n';
  }
  return rows.str();
}

std::string CostModel::Table() {
  std::string table =
      "executor\tlearned\tsteps\tnode\top\tdevice\tcount\taverage_ns\tcritical_path_ns\tslack_ns\t"
      "batch\torder\n";
  Models& models = Models::Get();
  std::lock_guard<std::mutex> lock(models.mu);
  std::vector<CostModel*> live(models.live.begin(), models.live.end());
  std::sort(live.begin(), live.end(),
            [](CostModel* a, CostModel* b) { return a->number_ < b->number_; });
  for (CostModel* model : live) table += model->Rows();
  return table;
}

void CostModel::Preload(const std::string& lines) {
  std::unordered_map<std::string, Cost> preloaded;
  std::istringstream text(lines);
  for (std::string line; std::getline(text, line);) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) continue;
    size_t begin = tab + 1;
    Cost cost;
    if (!ReadNumber(line, &begin, &cost.average_ns)) continue;
    cost.per_step_ns = cost.average_ns;
    if (begin < line.size() && !ReadNumber(line, &begin, &cost.per_step_ns)) continue;
    preloaded[line.substr(0, tab)] = cost;
  }
  Models& models = Models::Get();
  std::lock_guard<std::mutex> lock(models.mu);
  models.preloaded = std::move(preloaded);
}

void CostModel::RelearnAll() {
  Models& models = Models::Get();
  std::lock_guard<std::mutex> lock(models.mu);
  for (CostModel* model : models.live) {
    std::lock_guard<std::mutex> model_lock(model->mu_);
    for (Sum& sum : model->sums_) {
      sum.ticks.store(0, std::memory_order_relaxed);
      sum.count.store(0, std::memory_order_relaxed);
    }
    model->steps_.store(0, std::memory_order_relaxed);
  }
}

}  // namespace workbench
