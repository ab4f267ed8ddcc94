#ifndef WORKBENCH_STAGING_BUFFER_AFTER_UNLOCK_H_
#define WORKBENCH_STAGING_BUFFER_AFTER_UNLOCK_H_

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "staging/buffer/outcome.h"

namespace workbench {

// Callbacks to run, and records to destroy, once a lock is released: declare it before the lock.
template <typename Record>
struct AfterUnlock {
  using Done = std::function<void(const Outcome&)>;
  using TakeDone = std::function<void(const Outcome&, Record)>;

  AfterUnlock() = default;
  AfterUnlock(const AfterUnlock&) = delete;
  AfterUnlock& operator=(const AfterUnlock&) = delete;
  ~AfterUnlock() {
    for (auto& call : calls) call();
  }

  void Call(Done done, Outcome outcome) {
    calls.push_back([done = std::move(done), outcome = std::move(outcome)] { done(outcome); });
  }
  void Call(TakeDone done, Outcome outcome) {
    calls.push_back(
        [done = std::move(done), outcome = std::move(outcome)] { done(outcome, Record()); });
  }
  void HandOver(TakeDone done, Record record) {
    // std::function copies its target, so the record, which may be movable only, sits in a box.
    auto box = std::make_shared<Record>(std::move(record));
    calls.push_back([done = std::move(done), box] { done(Outcome(), std::move(*box)); });
  }

  std::vector<std::function<void()>> calls;
  std::vector<Record> dropped;
};

}  // namespace workbench

#endif  // WORKBENCH_STAGING_BUFFER_AFTER_UNLOCK_H_
