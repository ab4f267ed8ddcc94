#ifndef WORKBENCH_STAGING_BUFFER_STAGE_BUFFER_TRAILING_INL_H_
#define WORKBENCH_STAGING_BUFFER_STAGE_BUFFER_TRAILING_INL_H_

// The calls of StageBuffer on runs whose updates trail; stage_buffer.h includes this.

#include "staging/buffer/stage_buffer.h"

namespace workbench {

template <typename Record>
void StageBuffer<Record>::Begin(const TicketPtr& ticket, int64_t token, int64_t thread,
                                Done done) {
  After after;
  std::lock_guard<std::mutex> lock(mu_);
  Outcome refused = RefusalLocked("begin", *ticket, token);
  if (refused.ok() && rest_.RefusesPuts()) refused = Restarted(stage_, "begin");
  if (refused.ok()) {
    runs_.Begin(ticket, thread, std::move(done), &after);
  } else {
    runs_.Close(thread, &after);
    after.Call(std::move(done), std::move(refused));
  }
}

template <typename Record>
void StageBuffer<Record>::Await(const TicketPtr& ticket, int64_t token, int64_t thread,
                                TakeDone done) {
  After after;
  std::lock_guard<std::mutex> lock(mu_);
  if (ticket->cancelled) {
    after.Call(std::move(done), StepCancelled(stage_, "await"));
  } else if (token != token_) {
    after.Call(std::move(done), Superseded(stage_, "await"));
  } else {
    runs_.Await(ticket, thread, std::move(done), &after);
  }
}

template <typename Record>
Outcome StageBuffer<Record>::Return(int64_t step, Record record) {
  After after;
  std::lock_guard<std::mutex> lock(mu_);
  return runs_.Return(step, std::move(record), &after);
}

template <typename Record>
void StageBuffer<Record>::EndStep(int64_t step) {
  After after;
  std::lock_guard<std::mutex> lock(mu_);
  runs_.EndStep(step, &after);
}

template <typename Record>
void StageBuffer<Record>::EndRun(int64_t token, int64_t thread) {
  After after;
  std::lock_guard<std::mutex> lock(mu_);
  if (token == token_) runs_.Close(thread, &after);
}

template <typename Record>
void StageBuffer<Record>::Settle(const TicketPtr& ticket, Done done) {
  After after;
  std::lock_guard<std::mutex> lock(mu_);
  if (ticket->cancelled) {
    after.Call(std::move(done), StepCancelled(stage_, "settle"));
  } else if (cancelled_) {
    after.Call(std::move(done), Outcome());  // The producers leave: none closes its run any more.
  } else {
    runs_.Settle(ticket, std::move(done), &after);
  }
}

}  // namespace workbench

#endif  // WORKBENCH_STAGING_BUFFER_STAGE_BUFFER_TRAILING_INL_H_
