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
#include "tracing/ticks.h"

namespace workbench {

// What is known of a node before it has run. One without a name is no node of the graph: a number
// that nobody uses.
struct CostedNode {
  std::string name;
  std::string op;
  std::string device;
  // The kernel calls itself expensive: never counted as free, even if it was never seen to run.
  bool expensive = false;
};

// What the nodes of one executor cost, learned from its own steps START to STOP, or given.
//
// Every executor has one of its own: a staged side and the step that consumes it learn apart.
// Any number of threads may call everything at one time.
class CostModel {
 public:
  struct Settings {
    int64_t start_step = 100;  // Learns by itself only if 0 < start_step < stop_step.
    int64_t stop_step = 200;
    int64_t batch_ns = 5000;  // Short ops are run together up to this sum of averages, or
    int64_t batch_ops = 100;  // this many of them.
  };

  // What is known of one node. `per_step_ns`: of all its runs in a step that runs it; in a loop
  // that is what the loop takes, one round after the other.
  struct Cost {
    int64_t average_ns = 0;
    int64_t per_step_ns = 0;
  };

  // What scheduling goes by; but for the trial, frozen once it is made.
  struct Learned {
    std::vector<int64_t> average_ns;  // Per run of the node.
    std::vector<int64_t> to_sink_ns;  // The most costly way to the end of the step, with itself.
    std::vector<int64_t> slack_ns;
    mutable OrderTrial trial;
  };

  CostModel(const Settings& settings, std::vector<CostedNode> nodes, Flow flow);
  ~CostModel();

  const Settings& settings() const { return settings_; }

  // Counts a step that begins. True: its ops are to be measured.
  bool BeginStep();
  // A run of a node took so many ticks of work.
  void Add(int32_t node, uint64_t ticks) {
    Sum& sum = sums_[node];
    sum.ticks.fetch_add(ticks, std::memory_order_relaxed);
    sum.count.fetch_add(1, std::memory_order_relaxed);
  }
  // Null until something is known.
  std::shared_ptr<const Learned> learned() const;
  // The batch that a node was scheduled in; for the table only.
  void Scheduled(int32_t node, int32_t batch) {
    batches_[node].store(batch, std::memory_order_relaxed);
  }

  // All that live models know, as a table with tabs.
  static std::string Table();
  // Lines of "node<TAB>average_ns<TAB>per_step_ns", the latter only where it is another: models made
  // later start with them if they know 90 % of their nodes; the others cost nothing. Empty text
  // forgets.
  static void Give(const std::string& lines);
  // Every live model counts START and STOP anew; until STOP it goes by what it knows.
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
  void Know(const std::vector<Cost>& costs);
  void StartWithGiven();
  std::string Rows() const;

  const Settings settings_;
  const int number_;
  const std::vector<CostedNode> nodes_;
  const Flow flow_;
  std::vector<Sum> sums_;
  std::vector<std::atomic<int32_t>> batches_;
  std::atomic<int64_t> steps_{0};

  mutable std::mutex mu_;  // Guards all below. Taken after the lock of the list of models.
  std::shared_ptr<const Learned> learned_;
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_SCHEDULING_COST_MODEL_H_
