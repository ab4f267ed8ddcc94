#ifndef WORKBENCH_STAGING_BUFFER_STAGE_BUFFER_CALLS_INL_H_
#define WORKBENCH_STAGING_BUFFER_STAGE_BUFFER_CALLS_INL_H_

// The calls of StageBuffer; stage_buffer.h includes this.

#include "staging/buffer/stage_buffer.h"

namespace workbench {

template <typename Record>
std::shared_ptr<StageBuffer<Record>> StageBuffer<Record>::Create(std::string stage,
                                                                 int64_t capacity,
                                                                 size_t most_events) {
  return std::shared_ptr<StageBuffer>(
      new StageBuffer(std::move(stage), capacity, most_events));
}

template <typename Record>
void StageBuffer<Record>::Resume(int64_t token, int64_t producers) {
  After after;
  std::lock_guard<std::mutex> lock(mu_);
  const bool again = started_ && FamilyOf(token) == FamilyOf(token_);
  if (token != token_) {
    const auto superseded = [this](const char* call) { return Superseded(stage_, call); };
    EndHeldPutsLocked(Outcome(), &after);
    EndRestsLocked(superseded, &after);
    runs_.Clear(superseded, &after);
    if (again) {
      ParkPutsLocked(superseded, &after);
      DropTrailingLocked(&after);
    } else {
      EndWaitsLocked(superseded, /*takes=*/started_, &after);
      DropItemsLocked(superseded("await"), &after);
      first_run_ = RunOf(token);
    }
    rest_.producers = std::max<int64_t>(0, producers);
    rest_.cut_short = false;
    token_ = token;
    EndHoldsLocked(&after);
  }
  closed_ = cancelled_ = false;
  error_ = Outcome();
  started_ = true;
  for (Record& record : preloaded_) AdmitLocked(std::move(record), kNobody, 0, &after);
  preloaded_.clear();
  for (WaitingTake& taking : waiting_takes_) ClearDeadlineLocked(*taking.ticket);
  ServeTakesLocked(&after);
  AdmitQueuedLocked(&after);
}

template <typename Record>
void StageBuffer<Record>::Put(const TicketPtr& ticket, int64_t token, int64_t thread,
                              Record record, int64_t timeout_millis, Done done, bool reserve) {
  After after;
  std::lock_guard<std::mutex> lock(mu_);
  Outcome refused = RefusalLocked("put", *ticket, token);
  const bool keeps = !refused.ok() && KeepsLocked(*ticket, token, thread);
  if (refused.ok() && rest_.RefusesPuts()) refused = Restarted(stage_, "put");
  if (refused.ok() && closed_) refused = PutAfterClose(stage_);
  if (!refused.ok()) {
    if (keeps) {
      queued_puts_.push_back({ticket, thread, std::move(record), WallNanos(), reserve, nullptr});
      if (!EndedLocked()) AdmitQueuedLocked(&after);
    } else {
      after.dropped.push_back(std::move(record));
    }
    after.Call(std::move(done), std::move(refused));
    return;
  }
  if (queued_puts_.empty() && HasRoomLocked(reserve)) {
    AdmitLocked(std::move(record), thread, events_.recording() ? WallNanos() : 0, &after);
    ServeTakesLocked(&after);
    EndPutLocked(ticket, std::move(done), &after);
    return;
  }
  SetDeadlineLocked(ticket, timeout_millis);
  queued_puts_.push_back(
      {ticket, thread, std::move(record), WallNanos(), reserve, std::move(done)});
  EndHoldsLocked(&after);
}

template <typename Record>
void StageBuffer<Record>::Flush(const TicketPtr& ticket, int64_t token, int64_t thread,
                                int64_t timeout_millis, Done done) {
  After after;
  std::lock_guard<std::mutex> lock(mu_);
  Outcome refused = RefusalLocked("flush", *ticket, token);
  if (!refused.ok() || !HasQueuedPutLocked(thread)) {
    after.Call(std::move(done), std::move(refused));
    return;
  }
  SetDeadlineLocked(ticket, timeout_millis);
  waiting_flushes_.push_back({ticket, thread, std::move(done)});
  EndHoldsLocked(&after);
}

template <typename Record>
void StageBuffer<Record>::Rest(const TicketPtr& ticket, int64_t token, RestReason reason,
                               std::string message, Done done) {
  After after;
  std::lock_guard<std::mutex> lock(mu_);
  Outcome refused = RefusalLocked("rest", *ticket, token);
  if (!refused.ok()) {
    after.Call(std::move(done), std::move(refused));
    return;
  }
  if (reason == RestReason::kCutShort) {
    reason = RestReason::kReady;
    rest_.cut_short = true;
    if (rest_.restarting.empty()) EndTakesLocked(RestartCutShort(stage_), &after);
  }
  rest_.resting.push_back({ticket, reason, std::move(message), std::move(done)});
  SettleLocked(&after);
  EndHoldsLocked(&after);
}

template <typename Record>
void StageBuffer<Record>::Restart(const TicketPtr& ticket, int64_t step, int64_t timeout_millis,
                                  Done done) {
  After after;
  std::lock_guard<std::mutex> lock(mu_);
  rest_.initializing.push_back(step);
  const auto restarted = [this](const char* call) { return Restarted(stage_, call); };
  for (Record& record : preloaded_) after.dropped.push_back(std::move(record));
  preloaded_.clear();
  first_run_ = RunOf(token_);
  if (!ticket->cancelled && StoppedLocked()) {
    // A producer of the run that was stopped may still read.
    ++first_run_;
    EndWaitsLocked(restarted, /*takes=*/false, &after);
    DropItemsLocked(restarted("await"), &after);
  }
  if (ticket->cancelled || !started_ || cancelled_ || rest_.producers == 0) {
    after.Call(std::move(done),
               ticket->cancelled ? StepCancelled(stage_, "restart") : Outcome());
    return;
  }
  EndHeldPutsLocked(restarted("put"), &after);
  EndWaitsLocked(restarted, /*takes=*/false, &after);
  runs_.EndBegins(restarted, &after);
  DropItemsLocked(restarted("await"), &after);
  // These must not wait for the end of the step.
  EndTakesLocked(TakeWhileInitializing(stage_), &after,
                 [step](const WaitingTake& taking) { return taking.step == step; });
  EndTakesLocked(Restarted(stage_, "take"), &after,
                 [](const WaitingTake& taking) { return taking.ahead; });
  SetDeadlineLocked(ticket, timeout_millis);
  rest_.restarting.push_back({ticket, std::move(done)});
  SettleLocked(&after);
}

template <typename Record>
void StageBuffer<Record>::EndRestart(int64_t step) {
  After after;
  std::lock_guard<std::mutex> lock(mu_);
  auto found = std::find(rest_.initializing.begin(), rest_.initializing.end(), step);
  if (found != rest_.initializing.end()) rest_.initializing.erase(found);
  SettleLocked(&after);
}

template <typename Record>
void StageBuffer<Record>::Take(const TicketPtr& ticket, int64_t step,
                               int64_t start_timeout_millis, TakeDone done, bool ahead) {
  After after;
  std::lock_guard<std::mutex> lock(mu_);
  Outcome refused = TakeRefusalLocked(*ticket, step, ahead);
  if (!refused.ok()) {
    after.Call(std::move(done), std::move(refused));
  } else if (!items_.empty()) {
    PopLocked(step, events_.recording() ? WallNanos() : 0, std::move(done), &after);
    AdmitQueuedLocked(&after);
  } else if (EndedLocked() && queued_puts_.empty()) {
    after.Call(std::move(done), EndLocked());
  } else {
    if (!started_) SetDeadlineLocked(ticket, start_timeout_millis);
    waiting_takes_.push_back(
        {ticket, step, WallNanos(), ahead, std::move(done)});
    AdmitQueuedLocked(&after);  // A reserving put may wait although the buffer is empty.
    if (waiting_takes_.empty()) return;
    if (held_.HasState(step)) ReleaseLocked(step, &after);
    if (rest_.All() && rest_.initializing.empty()) {
      rest_.Any(RestReason::kClosed) ? EndTakesLocked(EndOfEpoch(stage_), &after)
                                     : WakeForTakesLocked(&after);
    }
  }
}

template <typename Record>
void StageBuffer<Record>::CancelCall(const TicketPtr& ticket) {
  After after;
  std::lock_guard<std::mutex> lock(mu_);
  ticket->cancelled = true;
  const size_t of_producers = WaitingProducersLocked();
  RemoveLocked(ticket, &after,
               [this](const char* call) { return StepCancelled(stage_, call); });
  if (WaitingProducersLocked() < of_producers) {
    // Their session is dead: nobody will come to rest any more.
    rest_.producers = 0;
    EndRestartsLocked(&after);
    EndHoldsLocked(&after);
  }
}

template <typename Record>
void StageBuffer<Record>::Cancel(int64_t token, int code, const std::string& message) {
  After after;
  std::lock_guard<std::mutex> lock(mu_);
  if (token != token_ || !started_ || cancelled_) return;
  if (rest_.HaveEnded()) closed_ = true;
  const auto end = [&](const char* call) { return CallCancelled(stage_, call, message); };
  EndHeldPutsLocked(Outcome(), &after);
  EndRestsLocked(end, &after);
  rest_.producers = 0;  // They leave.
  EndHoldsLocked(&after);
  if (closed_ && queued_puts_.empty()) return;
  cancelled_ = true;
  const bool stop = code == static_cast<int>(Code::kOk) ||
                    code == static_cast<int>(Code::kCancelled);
  error_ = stop ? Outcome{Code::kCancelled, message}
                : Outcome{static_cast<Code>(code), message};
  keeps_ = code != static_cast<int>(Code::kCancelled);
  if (!keeps_) {
    EndWaitsLocked(end, /*takes=*/false, &after);
  } else {
    ParkPutsLocked(end, &after);
  }
  EndTakesLocked(EndLocked(), &after);
  runs_.EndBegins(end, &after);
  // After an error the steps still take what is in the buffer, and train on it.
  if (stop) runs_.EndUntaken(end("await"), &after);
  runs_.EndSettling(Outcome(), &after);
}

template <typename Record>
void StageBuffer<Record>::Close(int64_t token) {
  After after;
  std::lock_guard<std::mutex> lock(mu_);
  if (token != token_ || !started_ || cancelled_) return;
  closed_ = true;
  // A take that waits means that the buffer and the queue of puts are empty.
  EndTakesLocked(EndLocked(), &after);
}

template <typename Record>
int64_t StageBuffer<Record>::Size() const {
  std::lock_guard<std::mutex> lock(mu_);
  return static_cast<int64_t>(items_.size());
}

template <typename Record>
std::vector<BufferEvent> StageBuffer<Record>::Drain(bool record) {
  std::lock_guard<std::mutex> lock(mu_);
  return events_.Drain(record);
}

template <typename Record>
void StageBuffer<Record>::Shutdown() {
  After after;
  std::lock_guard<std::mutex> lock(mu_);
  const auto gone = [this](const char* call) { return BufferDestroyed(stage_, call); };
  EndHeldPutsLocked(gone("put"), &after);
  EndWaitsLocked(gone, /*takes=*/true, &after);
  EndRestsLocked(gone, &after);
  rest_.producers = 0;
  EndHoldsLocked(&after);
  runs_.Clear(gone, &after);
  cancelled_ = true;
  error_ = gone("take");
}

}  // namespace workbench

#endif  // WORKBENCH_STAGING_BUFFER_STAGE_BUFFER_CALLS_INL_H_
