#ifndef WORKBENCH_STAGING_BUFFER_STAGE_BUFFER_SAVES_INL_H_
#define WORKBENCH_STAGING_BUFFER_STAGE_BUFFER_SAVES_INL_H_

// The calls of StageBuffer that save and restore the state of its input; stage_buffer.h includes
// this.

#include "staging/buffer/stage_buffer.h"

namespace workbench {

template <typename Record>
void StageBuffer<Record>::Hold(const TicketPtr& ticket, int64_t step, int64_t timeout_millis,
                               Done done) {
  After after;
  std::lock_guard<std::mutex> lock(mu_);
  held_.saving.push_back({step});
  if (ticket->cancelled) {
    after.Call(std::move(done), StepCancelled(stage_, "hold"));
    return;
  }
  const bool trails = !runs_.Empty() || std::any_of(items_.begin(), items_.end(),
                                                    [](const Item& item) { return item.run >= 0; });
  if (trails) {
    after.Call(std::move(done), HoldOfTrailing(stage_));
    return;
  }
  SetDeadlineLocked(ticket, timeout_millis);
  held_.waiting.push_back({ticket, std::move(done)});
  EndHoldsLocked(&after);
}

template <typename Record>
template <typename Visit>
void StageBuffer<Record>::VisitHeld(const Visit& visit) const {
  std::lock_guard<std::mutex> lock(mu_);
  for (const Item& item : items_) visit(item.record);
  for (const QueuedPut& entry : queued_puts_) visit(entry.record);
  for (const Record& record : preloaded_) visit(record);
}

template <typename Record>
void StageBuffer<Record>::EndHold(int64_t step) {
  After after;
  std::lock_guard<std::mutex> lock(mu_);
  held_.NoteState(step);
  const bool takes =
      std::any_of(waiting_takes_.begin(), waiting_takes_.end(),
                  [step](const WaitingTake& taking) { return taking.step == step; });
  if (takes && held_.HasState(step)) ReleaseLocked(step, &after);
}

template <typename Record>
void StageBuffer<Record>::Release(int64_t step) {
  After after;
  std::lock_guard<std::mutex> lock(mu_);
  ReleaseLocked(step, &after);
}

template <typename Record>
void StageBuffer<Record>::Preload(std::vector<Record> records) {
  After after;
  std::lock_guard<std::mutex> lock(mu_);
  if (!started_ || StoppedLocked()) {
    preloaded_.swap(records);
    for (Record& record : records) after.dropped.push_back(std::move(record));
    return;
  }
  DropItemsLocked(Restarted(stage_, "await"), &after);
  for (Record& record : records) AdmitLocked(std::move(record), kNobody, WallNanos(), &after);
  ServeTakesLocked(&after);
}

template <typename Record>
bool StageBuffer<Record>::IsInUse() const {
  std::lock_guard<std::mutex> lock(mu_);
  return !items_.empty() || !queued_puts_.empty() || !preloaded_.empty() || rest_.producers > 0;
}

template <typename Record>
void StageBuffer<Record>::ReleaseLocked(int64_t step, After* after) {
  held_.Forget(step);
  if (held_.Any()) return;
  EndHeldPutsLocked(Outcome(), after);
  SettleLocked(after);
}

template <typename Record>
void StageBuffer<Record>::EndPutLocked(const TicketPtr& ticket, Done done, After* after) {
  if (!held_.Any()) {
    after->Call(std::move(done), Outcome());
    return;
  }
  held_.puts.push_back({ticket, std::move(done)});
  EndHoldsLocked(after);
}

template <typename Record>
void StageBuffer<Record>::EndHoldsLocked(After* after) {
  if (held_.waiting.empty()) return;
  const size_t parked = std::count_if(queued_puts_.begin(), queued_puts_.end(),
                                      [](const QueuedPut& entry) { return !entry.done; });
  const size_t idle = held_.puts.size() + queued_puts_.size() - parked + waiting_flushes_.size() +
                      rest_.resting.size();
  if (static_cast<int64_t>(idle) < rest_.producers) return;
  for (auto& waiting : held_.waiting) {
    ClearDeadlineLocked(*waiting.ticket);
    after->Call(std::move(waiting.done), Outcome());
  }
  held_.waiting.clear();
}

template <typename Record>
void StageBuffer<Record>::EndHeldPutsLocked(const Outcome& outcome, After* after) {
  for (auto& put : held_.puts) after->Call(std::move(put.done), outcome);
  held_.puts.clear();
}

}  // namespace workbench

#endif  // WORKBENCH_STAGING_BUFFER_STAGE_BUFFER_SAVES_INL_H_
