#ifndef WORKBENCH_EXECUTOR_SCHEDULING_COST_MODEL_H_
#define WORKBENCH_EXECUTOR_SCHEDULING_COST_MODEL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "executor/scheduling/dag.h"
#include "executor/scheduling/order_trial.h"
#include "threading/guarded_by.h"
#include "tracing/ticks.h"

namespace workbench {

// A node as it is known before it runs. One without a name is an unused number, no node of the
// graph.
struct CostedNode {
  std::string name;
  std::string op;
  std::string device;
  // The kernel is marked expensive: it has a cost even if it never ran while the model learned.
  bool expensive = false;
};

// The costs of one executor's nodes, learned from its steps START to STOP, or preloaded.
//
// Every executor has its own: the executors of a staged side and of its compute side learn
// separately. All methods are safe for any thread. Lock order: the lock of the list of models, then
// a model's mu_.
class CostModel {
 public:
  struct Settings {
    int64_t start_step = 100;  // Learns from steps only if 0 < start_step < stop_step.
    int64_t stop_step = 200;
    int64_t batch_ns = 5000;  // One thread runs short ops as a batch: at most this sum of averages,
    int64_t batch_ops = 100;  // and at most this many ops.
  };

  // The cost of one node. `per_step_ns`: of all its runs in a step that runs it, so that a loop
  // counts with all its iterations.
  struct Cost {
    int64_t average_ns = 0;
    int64_t per_step_ns = 0;
  };

  // The costs that the scheduler reads. Immutable, but for the trial.
  struct Learned {
    std::vector<int64_t> average_ns;  // Per run of the node.
    std::vector<int64_t> to_sink_ns;  // The longest path to the end of the step, the node included.
    std::vector<int64_t> slack_ns;
    mutable OrderTrial trial;
  };

  CostModel(const Settings& settings, std::vector<CostedNode> nodes, Dag dag);
  ~CostModel();

  const Settings& settings() const { return settings_; }

  // Counts a step that begins. True: the step measures its ops.
  bool BeginStep();
  // Adds a run of a node: its ticks, without those that it only waited.
  void Add(int32_t node, uint64_t ticks) {
    Sum& sum = sums_[node];
    sum.ticks.fetch_add(ticks, std::memory_order_relaxed);
    sum.count.fetch_add(1, std::memory_order_relaxed);
  }
  // Null until costs were learned or preloaded.
  std::shared_ptr<const Learned> learned() const;
  // Notes the batch in which a node ran; for the table only.
  void Scheduled(int32_t node, int32_t batch) {
    batches_[node].store(batch, std::memory_order_relaxed);
  }

  // The costs of all live models, a table with tabs between columns.
  static std::string Table();
  // Lines of "node<TAB>average_ns<TAB>per_step_ns"; without the last column it equals the second.
  // Models that are created later start with these costs if 90 % of their nodes have one; the other
  // nodes cost nothing. An empty text removes what was preloaded.
  static void Preload(const std::string& lines);
  // Every live model counts its steps from 0 again; until STOP it keeps its present costs.
  static void RelearnAll();

 private:
  struct Sum {
    std::atomic<uint64_t> ticks{0};
    std::atomic<int64_t> count{0};
  };

  bool learns() const {
    return settings_.start_step > 0 && settings_.stop_step > settings_.start_step;
  }
  void Learn();
  void Publish(const std::vector<Cost>& costs);
  void StartWithPreloaded();
  std::string Rows() const;

  const Settings settings_;
  const int number_;
  const std::vector<CostedNode> nodes_;
  const Dag dag_;
  std::vector<Sum> sums_;
  std::vector<std::atomic<int32_t>> batches_;
  std::atomic<int64_t> steps_{0};

  mutable std::mutex mu_;
  std::shared_ptr<const Learned> learned_ WORKBENCH_GUARDED_BY(mu_);
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_SCHEDULING_COST_MODEL_H_
