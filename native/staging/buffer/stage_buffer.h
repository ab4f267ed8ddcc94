#ifndef WORKBENCH_STAGING_BUFFER_STAGE_BUFFER_H_
#define WORKBENCH_STAGING_BUFFER_STAGE_BUFFER_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "staging/buffer/deadline.h"
#include "staging/buffer/outcome.h"
#include "staging/buffer/producers_at_rest.h"
#include "staging/buffer/stage_messages.h"
#include "tracing/buffer_events.h"

namespace workbench {

// Names one put, flush or take, so that it can be cancelled while it waits. Used once.
class Ticket {
 private:
  template <typename Record>
  friend class StageBuffer;
  // Guarded by the buffer's lock. Set before the call comes in, it cancels the call at once.
  bool cancelled = false;
  DeadlineThread::Id deadline = DeadlineThread::kNone;
};

// The bounded queue of a stage: producers put records, steps take them, each exactly once, first
// in, first out. Calls that must wait hold no thread: they end in their callback, which runs on
// the thread that ended the wait, without any lock held.
//
// Owner. A session's producers own the buffer by a token. `Resume` with a new token makes the
// buffer start from nothing: items, waiting puts, parked records and flushes of the earlier owner
// go, and so do takes that waited under it (a step of a dead session must not swallow an item of
// the new one); takes that wait for the first owner ever stay. `Resume` with the owner's own token
// only reopens: it lifts cancel and close, and keeps items and whoever waits. Puts and flushes of
// an earlier owner end CANCELLED; its cancel and close do nothing.
//
// Line. A put that finds no room waits in line with its record. When its timeout passes, the put
// ends with DEADLINE_EXCEEDED but the record stays in line, parked, and `Flush` waits for it. Only
// Cancel, a new owner, or cancelling the put itself while it waits (its step is dead) drop it.
//
// End. Close ends an epoch: no new put, but whatever is in line is still admitted in order, and
// only then take says OUT_OF_RANGE. Cancel ends it at once: waiting puts, flushes and parked
// records go; what is in the buffer can still be taken; then take returns the error that Cancel
// was given. A Cancel after a Close that has nothing left in line changes nothing: every item was
// produced, so the epoch's end is the truth.
//
// Rest. An owner that says how many producers it has lets each of them rest while it has nothing to
// put. When all rest and a take finds nothing, the take wakes them, so that an input which begins
// again without anybody's word is read again; if they come back with their input ended, the take
// says OUT_OF_RANGE.
//
// Restart. `Restart` comes from the step that initializes the input again, before it does. It drops
// what the epoch before left, refuses what its producers still put, and ends when all of them rest:
// none can be reading then. Until `EndRestart`, which follows the step's end, takes wait; those of
// the staged side of another stage end instead, because that stage's producers must rest too.
//
// Lock order: mu_ first, then the lock of DeadlineThread. Callbacks and destructors of records run
// with neither.
template <typename Record>
class StageBuffer : public std::enable_shared_from_this<StageBuffer<Record>> {
 public:
  using Done = std::function<void(const Outcome&)>;
  using TakeDone = std::function<void(const Outcome&, Record)>;
  using TicketPtr = std::shared_ptr<Ticket>;

  // `stage` is the name in messages; `capacity` at least 1.
  static std::shared_ptr<StageBuffer> Create(std::string stage, int64_t capacity,
                                             size_t most_events = BufferEvents::kMost) {
    return std::shared_ptr<StageBuffer>(
        new StageBuffer(std::move(stage), capacity, most_events));
  }

  ~StageBuffer() { Shutdown(); }

  int64_t capacity() const { return capacity_; }
  const std::string& stage() const { return stage_; }

  // `producers` says how many producers will rest when they have nothing to put; 0 for none.
  void Resume(int64_t token, int64_t producers = 0) {
    After after;
    std::lock_guard<std::mutex> lock(mu_);
    if (token != token_) {
      const auto superseded = [this](const char* call) { return Superseded(stage_, call); };
      ClearLocked(superseded, /*takes=*/started_, &after);
      EndRestsLocked(superseded, &after);
      DropItemsLocked(&after);
      rest_.producers = std::max<int64_t>(0, producers);
      rest_.cut_short = false;
      token_ = token;
    }
    closed_ = cancelled_ = false;
    error_ = Outcome();
    started_ = true;
    for (Taking& taking : takes_) DisarmLocked(*taking.ticket);
  }

  // Waits at most `timeout_millis` for room. `thread` is the producer's number.
  void Put(const TicketPtr& ticket, int64_t token, int64_t thread, Record record,
           int64_t timeout_millis, Done done) {
    After after;
    std::lock_guard<std::mutex> lock(mu_);
    Outcome refused = RefusalLocked("put", *ticket, token);
    if (refused.ok() && rest_.RefusesPuts()) refused = Restarted(stage_, "put");
    if (refused.ok() && closed_) refused = PutAfterClose(stage_);
    if (!refused.ok()) {
      after.dropped.push_back(std::move(record));
      after.Call(std::move(done), std::move(refused));
      return;
    }
    if (HasRoomLocked()) {  // Then nobody is in line.
      AdmitLocked(std::move(record), thread, events_.recording() ? WallNanos() : 0);
      HandOverLocked(&after);
      after.Call(std::move(done), Outcome());
      return;
    }
    ArmLocked(ticket, timeout_millis);
    line_.push_back({ticket, thread, std::move(record), WallNanos(), timeout_millis,
                     std::move(done)});
  }

  // Ends when no record of this owner's `thread` is left in line.
  void Flush(const TicketPtr& ticket, int64_t token, int64_t thread, int64_t timeout_millis,
             Done done) {
    After after;
    std::lock_guard<std::mutex> lock(mu_);
    Outcome refused = RefusalLocked("flush", *ticket, token);
    if (!refused.ok() || !InLineLocked(thread)) {
      after.Call(std::move(done), std::move(refused));
      return;
    }
    ArmLocked(ticket, timeout_millis);
    flushes_.push_back({ticket, thread, timeout_millis, std::move(done)});
  }

  // Ends when this producer is wanted again, see RestReason.
  void Rest(const TicketPtr& ticket, int64_t token, RestReason reason, std::string message,
            Done done) {
    After after;
    std::lock_guard<std::mutex> lock(mu_);
    Outcome refused = RefusalLocked("rest", *ticket, token);
    if (!refused.ok()) {
      after.Call(std::move(done), std::move(refused));
      return;
    }
    rest_.resting.push_back({ticket, reason, std::move(message), std::move(done)});
    SettleLocked(&after);
  }

  // To be called by the step `step` before it initializes the input again; ends when every producer
  // rests, after `timeout_millis` at the latest: then takes fail until another restart. EndRestart
  // must follow, however this ends.
  void Restart(const TicketPtr& ticket, int64_t step, int64_t timeout_millis, Done done) {
    After after;
    std::lock_guard<std::mutex> lock(mu_);
    rest_.initializing.push_back(step);
    if (ticket->cancelled || !started_ || cancelled_ || rest_.producers == 0) {
      after.Call(std::move(done),
                 ticket->cancelled ? StepCancelled(stage_, "restart") : Outcome());
      return;
    }
    ClearLocked([this](const char* call) { return Restarted(stage_, call); },
                /*takes=*/false, &after);
    DropItemsLocked(&after);
    // These must not wait for the end of the step.
    EndTakesLocked(TakeWhileInitializing(stage_), &after,
                   [step](const Taking& taking) { return taking.step == step; });
    EndTakesLocked(Restarted(stage_, "take"), &after,
                   [](const Taking& taking) { return taking.ahead; });
    ArmLocked(ticket, timeout_millis);
    rest_.restarting.push_back({ticket, std::move(done)});
    SettleLocked(&after);
  }

  // The step that called Restart has ended.
  void EndRestart(int64_t step) {
    After after;
    std::lock_guard<std::mutex> lock(mu_);
    auto found = std::find(rest_.initializing.begin(), rest_.initializing.end(), step);
    if (found != rest_.initializing.end()) rest_.initializing.erase(found);
    SettleLocked(&after);
  }

  // Waits for an item without limit, but only `start_timeout_millis` for the first owner ever.
  // `step` is noted in the events. `ahead` says that a producer of another stage takes.
  void Take(const TicketPtr& ticket, int64_t step, int64_t start_timeout_millis, TakeDone done,
            bool ahead = false) {
    After after;
    std::lock_guard<std::mutex> lock(mu_);
    Outcome refused = TakeRefusalLocked(*ticket, step, ahead);
    if (!refused.ok()) {
      after.Call(std::move(done), std::move(refused));
    } else if (!items_.empty()) {
      PopLocked(step, events_.recording() ? WallNanos() : 0, std::move(done), &after);
      AdvanceLocked(&after);
    } else if (EndedLocked()) {
      after.Call(std::move(done), EndLocked());
    } else {
      if (!started_) ArmLocked(ticket, start_timeout_millis);
      takes_.push_back({ticket, step, WallNanos(), start_timeout_millis, ahead, std::move(done)});
      if (rest_.All() && rest_.initializing.empty()) {
        rest_.Any(RestReason::kClosed) ? EndTakesLocked(EndOfEpoch(stage_), &after)
                                       : WakeLocked(&after);
      }
    }
  }

  // Ends the call of this ticket with CANCELLED if it waits, or as soon as it comes in; does
  // nothing if it has ended. A put loses its record, unless it is parked; a flush keeps it.
  void CancelCall(const TicketPtr& ticket) {
    After after;
    std::lock_guard<std::mutex> lock(mu_);
    ticket->cancelled = true;
    const size_t of_producers = line_.size() + flushes_.size() + rest_.resting.size();
    RemoveLocked(ticket, &after, [this](const char* call, int64_t) {
      return StepCancelled(stage_, call);
    });
    if (line_.size() + flushes_.size() + rest_.resting.size() < of_producers) {
      // Their session is dead: nobody will come to rest any more.
      rest_.producers = 0;
      EndRestartsLocked(&after);
    }
  }

  // `code` kOk or kCancelled means a stop; any other is a producer's error, which take returns as
  // it is. Nothing happens when `token` is not the owner's.
  void Cancel(int64_t token, int code, const std::string& message) {
    After after;
    std::lock_guard<std::mutex> lock(mu_);
    if (token != token_ || !started_ || cancelled_) return;
    if (rest_.HaveEnded()) closed_ = true;
    const auto end = [&](const char* call) { return CallCancelled(stage_, call, message); };
    EndRestsLocked(end, &after);
    rest_.producers = 0;  // They leave.
    if (closed_ && line_.empty()) return;
    cancelled_ = true;
    const bool stop = code == static_cast<int>(Code::kOk) ||
                      code == static_cast<int>(Code::kCancelled);
    error_ = stop ? Outcome{Code::kCancelled, message}
                  : Outcome{static_cast<Code>(code), message};
    ClearLocked(end, /*takes=*/false, &after);
    EndTakesLocked(EndLocked(), &after);
  }

  // Nothing happens when `token` is not the owner's.
  void Close(int64_t token) {
    After after;
    std::lock_guard<std::mutex> lock(mu_);
    if (token != token_ || !started_ || cancelled_) return;
    closed_ = true;
    // A take that waits means that nothing is in the buffer or in line.
    EndTakesLocked(EndLocked(), &after);
  }

  // Items in the buffer; records in line are not in it.
  int64_t Size() const {
    std::lock_guard<std::mutex> lock(mu_);
    return static_cast<int64_t>(items_.size());
  }

  // Events since the last call; recording goes on or off.
  std::vector<BufferEvent> Drain(bool record) {
    std::lock_guard<std::mutex> lock(mu_);
    return events_.Drain(record);
  }

  // Ends every call that waits: the buffer is going away.
  void Shutdown() {
    After after;
    std::lock_guard<std::mutex> lock(mu_);
    const auto gone = [this](const char* call) { return BufferDestroyed(stage_, call); };
    ClearLocked(gone, /*takes=*/true, &after);
    EndRestsLocked(gone, &after);
    cancelled_ = true;
    error_ = gone("take");
  }

 private:
  struct Item {
    int64_t number;
    Record record;
  };
  struct InLine {
    TicketPtr ticket;
    int64_t thread;
    Record record;
    int64_t start_ns;
    int64_t timeout_millis;
    Done done;  // Empty once the put has timed out: the record is parked.
  };
  struct Flushing {
    TicketPtr ticket;
    int64_t thread;
    int64_t timeout_millis;
    Done done;
  };
  struct Taking {
    TicketPtr ticket;
    int64_t step;
    int64_t start_ns;
    int64_t start_timeout_millis;
    bool ahead;
    TakeDone done;
  };

  // What is left to do once the lock is released: declare it before the lock.
  struct After {
    After() = default;
    After(const After&) = delete;
    After& operator=(const After&) = delete;
    ~After() {
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

  StageBuffer(std::string stage, int64_t capacity, size_t most_events)
      : stage_(std::move(stage)), capacity_(std::max<int64_t>(1, capacity)),
        events_(most_events) {}

  bool HasRoomLocked() const { return static_cast<int64_t>(items_.size()) < capacity_; }
  bool EndedLocked() const { return closed_ || cancelled_; }

  // What a take of an empty buffer gets after Cancel or Close.
  Outcome EndLocked() const { return cancelled_ ? error_ : EndOfEpoch(stage_); }

  Outcome RefusalLocked(const char* call, const Ticket& ticket, int64_t token) const {
    if (ticket.cancelled) return StepCancelled(stage_, call);
    if (!started_) return NotResumed(stage_, call);
    if (token != token_) return Superseded(stage_, call);
    if (cancelled_) return CallCancelled(stage_, call, error_.message);
    return Outcome();
  }

  Outcome TakeRefusalLocked(const Ticket& ticket, int64_t step, bool ahead) const {
    if (ticket.cancelled) return StepCancelled(stage_, "take");
    if (rest_.producers == 0 || EndedLocked()) return Outcome();
    if (rest_.IsInitializing(step)) return TakeWhileInitializing(stage_);
    if (ahead && !rest_.initializing.empty()) return Restarted(stage_, "take");
    if (ahead && rest_.NotReady()) return NotReady(stage_, rest_.NotReady()->message);
    return rest_.cut_short && rest_.restarting.empty() ? RestartCutShort(stage_) : Outcome();
  }

  bool InLineLocked(int64_t thread) const {
    return std::any_of(line_.begin(), line_.end(),
                       [thread](const InLine& entry) { return entry.thread == thread; });
  }

  void AdmitLocked(Record record, int64_t thread, int64_t start_ns) {
    const int64_t number = next_number_++;
    items_.push_back({number, std::move(record)});
    if (events_.recording()) {
      events_.Add({BufferEvent::kPut, number, thread, start_ns, WallNanos(),
                   static_cast<int64_t>(items_.size())});
    }
  }

  void PopLocked(int64_t step, int64_t start_ns, TakeDone done, After* after) {
    Item item = std::move(items_.front());
    items_.pop_front();
    if (events_.recording()) {
      events_.Add({BufferEvent::kTake, item.number, step, start_ns, WallNanos(),
                   static_cast<int64_t>(items_.size())});
    }
    after->HandOver(std::move(done), std::move(item.record));
  }

  // Items go to the takes that wait for them.
  void HandOverLocked(After* after) {
    while (!items_.empty() && !takes_.empty()) {
      Taking taking = std::move(takes_.front());
      takes_.pop_front();
      DisarmLocked(*taking.ticket);
      PopLocked(taking.step, taking.start_ns, std::move(taking.done), after);
    }
  }

  // Records in line move up into free places. Afterwards a record in line means a full buffer, and
  // a waiting take means an empty one with nobody in line.
  void AdvanceLocked(After* after) {
    while (!line_.empty() && HasRoomLocked()) {
      InLine entry = std::move(line_.front());
      line_.pop_front();
      DisarmLocked(*entry.ticket);
      AdmitLocked(std::move(entry.record), entry.thread, entry.start_ns);
      if (entry.done) after->Call(std::move(entry.done), Outcome());
      EndFlushesLocked(entry.thread, after);
      HandOverLocked(after);
    }
  }

  void EndFlushesLocked(int64_t thread, After* after) {
    if (flushes_.empty() || InLineLocked(thread)) return;
    for (auto flush = flushes_.begin(); flush != flushes_.end();) {
      if (flush->thread == thread) {
        DisarmLocked(*flush->ticket);
        after->Call(std::move(flush->done), Outcome());
        flush = flushes_.erase(flush);
      } else {
        ++flush;
      }
    }
  }

  void DropItemsLocked(After* after) {
    for (Item& item : items_) after->dropped.push_back(std::move(item.record));
    items_.clear();
  }

  // All may rest now: restarts end, and takes that wait get the end, or producers to wait for.
  void SettleLocked(After* after) {
    if (!rest_.All()) return;
    if (!rest_.restarting.empty()) {
      for (auto& resting : rest_.resting) resting.reason = RestReason::kReady;
      rest_.cut_short = false;
      EndRestartsLocked(after);
    }
    if (const auto* cause = rest_.NotReady()) {
      const Outcome not_ready = NotReady(stage_, cause->message);
      EndTakesLocked(not_ready, after, [](const Taking& taking) { return taking.ahead; });
    }
    if (!rest_.initializing.empty() || takes_.empty()) return;
    rest_.HaveEnded() ? EndTakesLocked(EndOfEpoch(stage_), after) : WakeLocked(after);
  }

  void WakeLocked(After* after) {
    for (auto& resting : rest_.resting) after->Call(std::move(resting.done), Outcome());
    rest_.resting.clear();
  }

  void EndRestartsLocked(After* after) {
    for (auto& restarting : rest_.restarting) {
      DisarmLocked(*restarting.ticket);
      after->Call(std::move(restarting.done), Outcome());
    }
    rest_.restarting.clear();
  }

  template <typename End>
  void EndRestsLocked(const End& end, After* after) {
    for (auto& resting : rest_.resting) after->Call(std::move(resting.done), end("rest"));
    rest_.resting.clear();
    EndRestartsLocked(after);
  }

  void EndTakesLocked(const Outcome& outcome, After* after) {
    EndTakesLocked(outcome, after, [](const Taking&) { return true; });
  }

  // Those that `ends` picks.
  template <typename Ends>
  void EndTakesLocked(const Outcome& outcome, After* after, const Ends& ends) {
    for (auto taking = takes_.begin(); taking != takes_.end();) {
      if (!ends(*taking)) {
        ++taking;
        continue;
      }
      DisarmLocked(*taking->ticket);
      after->Call(std::move(taking->done), outcome);
      taking = takes_.erase(taking);
    }
  }

  // Ends everything that waits but, unless `takes`, the takes. `end` names the outcome of a call.
  template <typename End>
  void ClearLocked(const End& end, bool takes, After* after) {
    for (InLine& entry : line_) {
      DisarmLocked(*entry.ticket);
      after->dropped.push_back(std::move(entry.record));
      if (entry.done) after->Call(std::move(entry.done), end("put"));
    }
    line_.clear();
    for (Flushing& flush : flushes_) {
      DisarmLocked(*flush.ticket);
      after->Call(std::move(flush.done), end("flush"));
    }
    flushes_.clear();
    if (takes) EndTakesLocked(end("take"), after);
  }

  void ArmLocked(const TicketPtr& ticket, int64_t timeout_millis) {
    if (deadlines_ == nullptr) deadlines_ = DeadlineThread::Acquire();
    constexpr int64_t kYear = int64_t{365} * 24 * 3600 * 1000;  // Far from the clock's overflow.
    const std::chrono::milliseconds wait(std::clamp<int64_t>(timeout_millis, 0, kYear));
    ticket->deadline = deadlines_->Schedule(
        DeadlineThread::Clock::now() + wait, [weak = this->weak_from_this(), ticket] {
          if (auto self = weak.lock()) self->OnDeadline(ticket);
        });
  }

  void DisarmLocked(Ticket& ticket) {
    if (ticket.deadline == DeadlineThread::kNone) return;
    deadlines_->Cancel(ticket.deadline);
    ticket.deadline = DeadlineThread::kNone;
  }

  void OnDeadline(const TicketPtr& ticket) {
    After after;
    std::lock_guard<std::mutex> lock(mu_);
    // Disarmed just as it fired: the call has ended, or its owner has come after all.
    if (ticket->deadline == DeadlineThread::kNone) return;
    ticket->deadline = DeadlineThread::kNone;
    for (InLine& entry : line_) {
      if (entry.ticket != ticket) continue;
      after.Call(std::move(entry.done), PutTimedOut(stage_, capacity_, entry.timeout_millis));
      entry.done = nullptr;
      return;
    }
    RemoveLocked(ticket, &after, [this](const char* call, int64_t timeout_millis) {
      if (std::string(call) == "take") return NeverStarted(stage_, timeout_millis);
      // Whoever initializes goes on: the producers may be those of a dead client.
      if (std::string(call) == "restart") return Outcome();
      return FlushTimedOut(stage_, capacity_, timeout_millis);
    });
  }

  // Ends the waiting call of this ticket with end(call, its timeout). A parked put has ended.
  template <typename End>
  void RemoveLocked(const TicketPtr& ticket, After* after, const End& end) {
    const auto is_it = [&](const auto& waiting) { return waiting.ticket == ticket; };
    auto entry = std::find_if(line_.begin(), line_.end(), is_it);
    if (entry != line_.end()) {
      if (!entry->done) return;
      DisarmLocked(*ticket);
      after->Call(std::move(entry->done), end("put", entry->timeout_millis));
      after->dropped.push_back(std::move(entry->record));
      const int64_t thread = entry->thread;
      line_.erase(entry);
      EndFlushesLocked(thread, after);
      return;
    }
    auto flush = std::find_if(flushes_.begin(), flushes_.end(), is_it);
    if (flush != flushes_.end()) {
      DisarmLocked(*ticket);
      after->Call(std::move(flush->done), end("flush", flush->timeout_millis));
      flushes_.erase(flush);
      return;
    }
    auto resting = std::find_if(rest_.resting.begin(), rest_.resting.end(), is_it);
    if (resting != rest_.resting.end()) {
      after->Call(std::move(resting->done), end("rest", 0));
      rest_.resting.erase(resting);
      return;
    }
    auto restarting = std::find_if(rest_.restarting.begin(), rest_.restarting.end(), is_it);
    if (restarting != rest_.restarting.end()) {
      DisarmLocked(*ticket);
      after->Call(std::move(restarting->done), end("restart", 0));
      rest_.restarting.erase(restarting);
      rest_.cut_short = true;
      if (rest_.restarting.empty()) EndTakesLocked(RestartCutShort(stage_), after);
      return;
    }
    auto taking = std::find_if(takes_.begin(), takes_.end(), is_it);
    if (taking != takes_.end()) {
      DisarmLocked(*ticket);
      after->Call(std::move(taking->done), end("take", taking->start_timeout_millis));
      takes_.erase(taking);
    }
  }

  const std::string stage_;
  const int64_t capacity_;

  mutable std::mutex mu_;
  // All below is guarded by mu_.
  int64_t token_ = 0;
  bool started_ = false;  // Some owner has come; from then on takes wait without limit.
  bool closed_ = false;
  bool cancelled_ = false;
  Outcome error_;  // Of Cancel.
  int64_t next_number_ = 0;
  std::deque<Item> items_;
  std::list<InLine> line_;
  std::list<Flushing> flushes_;
  std::list<Taking> takes_;
  ProducersAtRest rest_;
  std::shared_ptr<DeadlineThread> deadlines_;  // Since the first call that waited with a limit.
  BufferEvents events_;
};

}  // namespace workbench

#endif  // WORKBENCH_STAGING_BUFFER_STAGE_BUFFER_H_
