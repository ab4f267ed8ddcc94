#ifndef WORKBENCH_STAGING_BUFFER_STAGE_BUFFER_WAITS_INL_H_
#define WORKBENCH_STAGING_BUFFER_STAGE_BUFFER_WAITS_INL_H_

// What StageBuffer does with its lock held: admit, serve, wake and end calls that wait, and their
// deadlines; stage_buffer.h includes this.

#include <chrono>

#include "staging/buffer/stage_buffer.h"

namespace workbench {

template <typename Record>
Outcome StageBuffer<Record>::RefusalLocked(const char* call, const Ticket& ticket,
                                           int64_t token) const {
  if (ticket.cancelled) return StepCancelled(stage_, call);
  if (!started_) return NotResumed(stage_, call);
  if (token != token_) return Superseded(stage_, call);
  if (cancelled_) return CallCancelled(stage_, call, error_.message);
  return Outcome();
}

template <typename Record>
Outcome StageBuffer<Record>::TakeRefusalLocked(const Ticket& ticket, int64_t step,
                                               bool ahead) const {
  if (ticket.cancelled) return StepCancelled(stage_, "take");
  if (rest_.producers == 0 || EndedLocked()) return Outcome();
  if (rest_.IsInitializing(step)) return TakeWhileInitializing(stage_);
  if (ahead && !rest_.initializing.empty()) return Restarted(stage_, "take");
  if (ahead && rest_.NotReady()) return NotReady(stage_, rest_.NotReady()->message);
  return rest_.cut_short && rest_.restarting.empty() ? RestartCutShort(stage_) : Outcome();
}

template <typename Record>
bool StageBuffer<Record>::KeepsLocked(const Ticket& ticket, int64_t token, int64_t thread) const {
  if (ticket.cancelled || !started_ || FamilyOf(token) != FamilyOf(token_)) return false;
  if (token == token_ && !(cancelled_ && keeps_)) return false;
  return first_run_ <= RunOf(token) && RunOf(token) <= RunOf(token_) && !runs_.Has(thread);
}

template <typename Record>
bool StageBuffer<Record>::HasQueuedPutLocked(int64_t thread) const {
  return std::any_of(queued_puts_.begin(), queued_puts_.end(),
                     [thread](const QueuedPut& entry) { return entry.thread == thread; });
}

template <typename Record>
void StageBuffer<Record>::AdmitLocked(Record record, int64_t thread, int64_t start_ns,
                                      After* after) {
  const int64_t number = next_number_++;
  items_.push_back({number, runs_.Put(thread, after), std::move(record)});
  if (events_.recording()) {
    events_.Add({BufferEvent::kPut, number, thread, start_ns, WallNanos(),
                 static_cast<int64_t>(items_.size())});
  }
}

template <typename Record>
void StageBuffer<Record>::PopLocked(int64_t step, int64_t start_ns, TakeDone done, After* after) {
  Item item = std::move(items_.front());
  items_.pop_front();
  if (item.run >= 0) runs_.Take(item.run, step);
  if (events_.recording()) {
    events_.Add({BufferEvent::kTake, item.number, step, start_ns, WallNanos(),
                 static_cast<int64_t>(items_.size())});
  }
  after->HandOver(std::move(done), std::move(item.record));
}

template <typename Record>
void StageBuffer<Record>::ServeTakesLocked(After* after) {
  while (!items_.empty() && !waiting_takes_.empty()) {
    WaitingTake taking = std::move(waiting_takes_.front());
    waiting_takes_.pop_front();
    ClearDeadlineLocked(*taking.ticket);
    PopLocked(taking.step, taking.start_ns, std::move(taking.done), after);
  }
}

template <typename Record>
void StageBuffer<Record>::AdmitQueuedLocked(After* after) {
  while (!queued_puts_.empty() && HasRoomLocked(queued_puts_.front().reserve)) {
    QueuedPut entry = std::move(queued_puts_.front());
    queued_puts_.pop_front();
    ClearDeadlineLocked(*entry.ticket);
    AdmitLocked(std::move(entry.record), entry.thread, entry.start_ns, after);
    if (entry.done) EndPutLocked(entry.ticket, std::move(entry.done), after);
    EndFlushesLocked(entry.thread, after);
    ServeTakesLocked(after);
  }
}

template <typename Record>
void StageBuffer<Record>::EndFlushesLocked(int64_t thread, After* after) {
  if (waiting_flushes_.empty() || HasQueuedPutLocked(thread)) return;
  for (auto flush = waiting_flushes_.begin(); flush != waiting_flushes_.end();) {
    if (flush->thread == thread) {
      ClearDeadlineLocked(*flush->ticket);
      after->Call(std::move(flush->done), Outcome());
      flush = waiting_flushes_.erase(flush);
    } else {
      ++flush;
    }
  }
}

template <typename Record>
void StageBuffer<Record>::DropItemsLocked(const Outcome& of_await, After* after) {
  for (Item& item : items_) {
    after->dropped.push_back(std::move(item.record));
    if (item.run >= 0) runs_.Drop(item.run, of_await, after);
  }
  items_.clear();
}

template <typename Record>
void StageBuffer<Record>::DropTrailingLocked(After* after) {
  for (auto item = items_.begin(); item != items_.end();) {
    if (item->run < 0) {
      ++item;
      continue;
    }
    after->dropped.push_back(std::move(item->record));
    item = items_.erase(item);
  }
}

template <typename Record>
void StageBuffer<Record>::SettleLocked(After* after) {
  if (!rest_.All()) return;
  if (!rest_.restarting.empty()) {
    for (auto& resting : rest_.resting) resting.reason = RestReason::kReady;
    rest_.cut_short = false;
    EndRestartsLocked(after);
  }
  if (const auto* cause = rest_.NotReady()) {
    const Outcome not_ready = NotReady(stage_, cause->message);
    EndTakesLocked(not_ready, after, [](const WaitingTake& taking) { return taking.ahead; });
  }
  if (!rest_.initializing.empty() || waiting_takes_.empty()) return;
  rest_.HaveEnded() ? EndTakesLocked(EndOfEpoch(stage_), after) : WakeForTakesLocked(after);
}

template <typename Record>
void StageBuffer<Record>::WakeForTakesLocked(After* after) {
  if (!held_.Any()) WakeLocked(after);  // Else the release does.
}

template <typename Record>
void StageBuffer<Record>::WakeLocked(After* after) {
  for (auto& resting : rest_.resting) after->Call(std::move(resting.done), Outcome());
  rest_.resting.clear();
}

template <typename Record>
void StageBuffer<Record>::EndRestartsLocked(After* after) {
  for (auto& restarting : rest_.restarting) {
    ClearDeadlineLocked(*restarting.ticket);
    after->Call(std::move(restarting.done), Outcome());
  }
  rest_.restarting.clear();
}

template <typename Record>
template <typename End>
void StageBuffer<Record>::EndRestsLocked(const End& end, After* after) {
  for (auto& resting : rest_.resting) after->Call(std::move(resting.done), end("rest"));
  rest_.resting.clear();
  EndRestartsLocked(after);
}

template <typename Record>
void StageBuffer<Record>::EndTakesLocked(const Outcome& outcome, After* after) {
  EndTakesLocked(outcome, after, [](const WaitingTake&) { return true; });
}

template <typename Record>
template <typename Ends>
void StageBuffer<Record>::EndTakesLocked(const Outcome& outcome, After* after, const Ends& ends) {
  for (auto taking = waiting_takes_.begin(); taking != waiting_takes_.end();) {
    if (!ends(*taking)) {
      ++taking;
      continue;
    }
    ClearDeadlineLocked(*taking->ticket);
    after->Call(std::move(taking->done), outcome);
    taking = waiting_takes_.erase(taking);
  }
}

template <typename Record>
template <typename End>
void StageBuffer<Record>::EndWaitsLocked(const End& end, bool takes, After* after) {
  for (QueuedPut& entry : queued_puts_) {
    ClearDeadlineLocked(*entry.ticket);
    after->dropped.push_back(std::move(entry.record));
    if (entry.done) after->Call(std::move(entry.done), end("put"));
  }
  queued_puts_.clear();
  for (WaitingFlush& flush : waiting_flushes_) {
    ClearDeadlineLocked(*flush.ticket);
    after->Call(std::move(flush.done), end("flush"));
  }
  waiting_flushes_.clear();
  if (takes) EndTakesLocked(end("take"), after);
}

template <typename Record>
template <typename End>
void StageBuffer<Record>::ParkPutsLocked(const End& end, After* after) {
  for (auto entry = queued_puts_.begin(); entry != queued_puts_.end();) {
    ClearDeadlineLocked(*entry->ticket);
    if (entry->done) after->Call(std::exchange(entry->done, nullptr), end("put"));
    if (!runs_.Has(entry->thread)) {
      ++entry;
      continue;
    }
    after->dropped.push_back(std::move(entry->record));
    entry = queued_puts_.erase(entry);
  }
  for (WaitingFlush& flush : waiting_flushes_) {
    ClearDeadlineLocked(*flush.ticket);
    after->Call(std::move(flush.done), end("flush"));
  }
  waiting_flushes_.clear();
}

template <typename Record>
void StageBuffer<Record>::SetDeadlineLocked(const TicketPtr& ticket, int64_t timeout_millis) {
  if (deadlines_ == nullptr) deadlines_ = DeadlineThread::Acquire();
  constexpr int64_t kYear = int64_t{365} * 24 * 3600 * 1000;  // Far from the clock's overflow.
  const std::chrono::milliseconds wait(std::clamp<int64_t>(timeout_millis, 0, kYear));
  ticket->timeout_millis = timeout_millis;
  ticket->deadline = deadlines_->Schedule(
      DeadlineThread::Clock::now() + wait, [weak = this->weak_from_this(), ticket] {
        if (auto self = weak.lock()) self->OnDeadline(ticket);
      });
}

template <typename Record>
void StageBuffer<Record>::ClearDeadlineLocked(Ticket& ticket) {
  if (ticket.deadline == DeadlineThread::kNone) return;
  deadlines_->Cancel(ticket.deadline);
  ticket.deadline = DeadlineThread::kNone;
}

template <typename Record>
void StageBuffer<Record>::OnDeadline(const TicketPtr& ticket) {
  After after;
  std::lock_guard<std::mutex> lock(mu_);
  // Disarmed just as it fired: the call has ended, or its owner has come after all.
  if (ticket->deadline == DeadlineThread::kNone) return;
  ticket->deadline = DeadlineThread::kNone;
  for (QueuedPut& entry : queued_puts_) {
    if (entry.ticket != ticket) continue;
    after.Call(std::move(entry.done), PutTimedOut(stage_, capacity_, ticket->timeout_millis));
    entry.done = nullptr;
    return;
  }
  RemoveLocked(ticket, &after, [&](const char* call) {
    if (std::string(call) == "take") return NeverStarted(stage_, ticket->timeout_millis);
    // The step that initializes the input goes on: the producers may be those of a dead client.
    if (std::string(call) == "restart") return Outcome();
    if (std::string(call) == "hold") return HoldTimedOut(stage_, ticket->timeout_millis);
    return FlushTimedOut(stage_, capacity_, ticket->timeout_millis);
  });
}

template <typename Record>
template <typename End>
void StageBuffer<Record>::RemoveLocked(const TicketPtr& ticket, After* after, const End& end) {
  const auto find_in = [&](auto& waiting) {
    return std::find_if(waiting.begin(), waiting.end(),
                        [&](const auto& each) { return each.ticket == ticket; });
  };
  // Whether the call waits in a list; then it ends.
  const auto ends_in = [&](auto& waiting, const char* call) {
    const auto it = find_in(waiting);
    if (it == waiting.end()) return false;
    ClearDeadlineLocked(*ticket);
    after->Call(std::move(it->done), end(call));
    waiting.erase(it);
    return true;
  };
  if (const auto entry = find_in(queued_puts_); entry != queued_puts_.end()) {
    if (!entry->done) return;
    const int64_t thread = entry->thread;
    after->dropped.push_back(std::move(entry->record));
    ends_in(queued_puts_, "put");
    EndFlushesLocked(thread, after);
  } else if (ends_in(rest_.restarting, "restart")) {
    rest_.cut_short = true;
    if (rest_.restarting.empty()) EndTakesLocked(RestartCutShort(stage_), after);
  } else if (!ends_in(waiting_flushes_, "flush") && !ends_in(rest_.resting, "rest") &&
             !ends_in(held_.puts, "put") && !ends_in(held_.waiting, "hold") &&
             !ends_in(waiting_takes_, "take")) {
    runs_.Remove(ticket, end, after);
  }
}

}  // namespace workbench

#endif  // WORKBENCH_STAGING_BUFFER_STAGE_BUFFER_WAITS_INL_H_
