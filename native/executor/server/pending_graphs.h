#ifndef WORKBENCH_EXECUTOR_SERVER_PENDING_GRAPHS_H_
#define WORKBENCH_EXECUTOR_SERVER_PENDING_GRAPHS_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "threading/guarded_by.h"

namespace workbench {

// Graphs between the pass that takes them out of a worker's partitions and the kernels that run
// them. TensorFlow makes the kernel right after the pass, unless another partition fails first. So
// a graph that nobody has taken for `max_age` goes away at the next Put.
template <class Graph>
class PendingGraphs {
 public:
  using Clock = std::chrono::steady_clock;

  explicit PendingGraphs(Clock::duration max_age) : max_age_(max_age) {}

  // The number by which Take finds the graph.
  int64_t Put(std::unique_ptr<Graph> graph, Clock::time_point now = Clock::now()) {
    std::lock_guard<std::mutex> lock(mu_);
    while (!graphs_.empty() && now - graphs_.begin()->second.since > max_age_) {
      graphs_.erase(graphs_.begin());
    }
    graphs_.emplace(next_, Entry{std::move(graph), now});
    return next_++;
  }

  // Null: no such graph, or no longer.
  std::unique_ptr<Graph> Take(int64_t number) {
    std::lock_guard<std::mutex> lock(mu_);
    const auto entry = graphs_.find(number);
    if (entry == graphs_.end()) return nullptr;
    std::unique_ptr<Graph> graph = std::move(entry->second.graph);
    graphs_.erase(entry);
    return graph;
  }

 private:
  struct Entry {
    std::unique_ptr<Graph> graph;
    Clock::time_point since;
  };

  const Clock::duration max_age_;
  std::mutex mu_;
  int64_t next_ WORKBENCH_GUARDED_BY(mu_) = 0;
  std::map<int64_t, Entry> graphs_ WORKBENCH_GUARDED_BY(mu_);  // The oldest first.
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_SERVER_PENDING_GRAPHS_H_
