#ifndef WORKBENCH_STAGING_BUFFER_STAGE_BUFFER_H_
#define WORKBENCH_STAGING_BUFFER_STAGE_BUFFER_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "staging/buffer/after_unlock.h"
#include "staging/buffer/deadline.h"
#include "staging/buffer/outcome.h"
#include "staging/buffer/owner_token.h"
#include "staging/buffer/producers_at_rest.h"
#include "staging/buffer/producers_held.h"
#include "staging/buffer/stage_messages.h"
#include "staging/buffer/ticket.h"
#include "staging/buffer/trailing_runs.h"
#include "threading/guarded_by.h"
#include "tracing/buffer_events.h"

namespace workbench {

// The bounded queue of a stage: producers put records, steps take them, each exactly once, first
// in, first out. Calls that must wait hold no thread: they end in their callback, which runs on
// the thread that ended the wait, without any lock held.
//
// Owner. A session's producers own the buffer by a token. `Resume` with a new token makes the
// buffer start from nothing: items, waiting puts, parked records and flushes of the earlier owner
// go, and so do takes that waited under it (a step of a dead session must not swallow an item of
// the new one); takes that wait for the first owner ever stay. `Resume` with the owner's own token
// only reopens: it lifts cancel and close, and keeps items and calls that wait. Puts and flushes of
// an earlier owner end CANCELLED; its cancel and close do nothing.
//
// Runs of one session. Tokens of one family (owner_token.h) belong to one session that stops the
// stage and starts it again: `Resume` then keeps all records, and a put of an earlier run that comes
// late leaves its record in the queue.
//
// Queue of puts. A put that finds no room waits in a queue with its record. When its timeout
// passes, the put ends with DEADLINE_EXCEEDED but its record stays queued, parked, and `Flush`
// waits for it. Only a plain stop, a new owner, or cancelling the put itself while it waits (its step
// is dead) drop it.
//
// Reserving puts. A put that reserves ends only when there is room for one item more than its own,
// or a take has come for it. An owner with one producer then never has more than `capacity` items on
// their way, the one that the producer works on among them: it begins item n after item n - capacity
// was taken.
//
// End. Close ends an epoch: no new put, but queued records are still admitted in order, and only
// then take returns OUT_OF_RANGE. Cancel ends it at once: puts and flushes end, items and queued
// records can still be taken; then take returns the error that Cancel was given. A plain stop, after
// which nobody resumes, drops the queued records. A Cancel after a Close changes nothing if no record
// is queued: all items were produced, so the epoch has ended well.
//
// Rest. An owner that says how many producers it has lets each of them rest while it has nothing to
// put. When all rest and a take finds no item, the take wakes them, so that they read an input that
// begins again by itself; if they come back with their input ended, the take returns OUT_OF_RANGE.
//
// Restart. A step that initializes the input again calls `Restart` before it does. Restart drops
// what the epoch before left, refuses what its producers still put, and ends when all of them rest:
// none can be reading then. Until `EndRestart`, which follows the step's end, takes wait; those of
// the staged side of another stage end instead, because that stage's producers must rest too.
//
// Save. A step that saves the state of the input calls `Hold`, which ends when no producer reads: each
// rests, or waits in a put or a flush. Then the records that `VisitHeld` shows are all that was read and
// not taken. The end of the step, by `Release`, lets the producers go on: until then a step may save
// other inputs of the stage. They go on earlier for a take of the same step, once that has what it
// saves. `Preload` gives records that a restore brings back.
//
// Trailing updates. A producer that begins its runs by `Begin` waits by `Await` for what the step that
// takes its item returns by `Return`; see TrailingRuns.
//
// Lock order: mu_, then the lock of DeadlineThread. Callbacks and destructors of records run with
// neither.
template <typename Record>
class StageBuffer : public std::enable_shared_from_this<StageBuffer<Record>> {
 public:
  using Done = std::function<void(const Outcome&)>;
  using TakeDone = typename AfterUnlock<Record>::TakeDone;
  using TicketPtr = std::shared_ptr<Ticket>;

  // `stage` is the name in messages; `capacity` at least 1.
  static std::shared_ptr<StageBuffer> Create(std::string stage, int64_t capacity,
                                             size_t most_events = BufferEvents::kMost);

  ~StageBuffer() { Shutdown(); }

  int64_t capacity() const { return capacity_; }
  const std::string& stage() const { return stage_; }

  // `producers` says how many producers will rest when they have nothing to put; 0 for none.
  void Resume(int64_t token, int64_t producers = 0);

  // Waits at most `timeout_millis` for room. `thread` is the producer's number. `reserve`: see above.
  void Put(const TicketPtr& ticket, int64_t token, int64_t thread, Record record,
           int64_t timeout_millis, Done done, bool reserve = false);

  // Ends when no record of this owner's `thread` is in the queue of puts.
  void Flush(const TicketPtr& ticket, int64_t token, int64_t thread, int64_t timeout_millis,
             Done done);

  // Ends when this producer is to try again, see RestReason.
  void Rest(const TicketPtr& ticket, int64_t token, RestReason reason, std::string message,
            Done done);

  // A step calls this before it initializes the input again. Ends when every producer rests, after
  // `timeout_millis` at the latest: then takes fail until another restart. EndRestart must follow,
  // however this ends.
  void Restart(const TicketPtr& ticket, int64_t step, int64_t timeout_millis, Done done);

  // The step that called Restart has ended.
  void EndRestart(int64_t step);

  // A step calls this before it saves the state of the input. Ends when no producer reads, with
  // DEADLINE_EXCEEDED after `timeout_millis`. Release must follow, however this ends.
  void Hold(const TicketPtr& ticket, int64_t step, int64_t timeout_millis, Done done);

  // Calls visit(record) for what was read and not taken, in order, with the lock held.
  template <typename Visit>
  void VisitHeld(const Visit& visit) const;

  // The step that called Hold has the state.
  void EndHold(int64_t step);

  // The step that called Hold has ended.
  void Release(int64_t step);

  // The only records in the buffer now: those of a restored input, which restarts before. Without an
  // owner they wait for the next one.
  void Preload(std::vector<Record> records);

  // Whether a session runs the stage, or records of one are here.
  bool IsInUse() const;

  // Waits for an item without limit, but only `start_timeout_millis` for the first owner ever.
  // `step` is noted in the events. `ahead` says that a producer of another stage takes.
  void Take(const TicketPtr& ticket, int64_t step, int64_t start_timeout_millis, TakeDone done,
            bool ahead = false);

  // A run of this producer, whose updates will trail, begins; the one before has ended. Ends when it
  // may read. The buffer needs room for the items of all producers.
  void Begin(const TicketPtr& ticket, int64_t token, int64_t thread, Done done);

  // Waits, in the producer's run and behind its put, for what is returned of its item.
  void Await(const TicketPtr& ticket, int64_t token, int64_t thread, TakeDone done);

  // Returns a record of the item that the step took, to the run that put it.
  Outcome Return(int64_t step, Record record);

  // A step that took has ended, however: what it did not return it never will.
  void EndStep(int64_t step);

  // The producer's run has ended, and no other begins yet.
  void EndRun(int64_t token, int64_t thread);

  // Ends when the runs that got something returned so far have ended.
  void Settle(const TicketPtr& ticket, Done done);

  // Ends the call of this ticket with CANCELLED if it waits, or as soon as it comes in; does
  // nothing if it has ended. A put loses its record, unless it is parked; a flush keeps it.
  void CancelCall(const TicketPtr& ticket);

  // `code` kOk means that the session may run the stage again, kCancelled a plain stop; any other is
  // a producer's error, which take returns as it is. Nothing happens when `token` is not the owner's.
  void Cancel(int64_t token, int code, const std::string& message);

  // Nothing happens when `token` is not the owner's.
  void Close(int64_t token);

  // Items in the buffer; records of puts that wait are not in it.
  int64_t Size() const;

  // Events since the last call; recording goes on or off.
  std::vector<BufferEvent> Drain(bool record);

  // Ends every call that waits: the buffer is going away.
  void Shutdown();

 private:
  static constexpr int64_t kNobody = -1;  // The producer of a preloaded record.

  struct Item {
    int64_t number;
    int64_t run;  // Of TrailingRuns, or -1.
    Record record;
  };
  struct QueuedPut {
    TicketPtr ticket;
    int64_t thread;
    Record record;
    int64_t start_ns;
    bool reserve;
    Done done;  // Empty once the put has timed out: the record is parked.
  };
  struct WaitingFlush {
    TicketPtr ticket;
    int64_t thread;
    Done done;
  };
  struct WaitingTake {
    TicketPtr ticket;
    int64_t step;
    int64_t start_ns;
    bool ahead;
    TakeDone done;
  };

  using After = AfterUnlock<Record>;

  StageBuffer(std::string stage, int64_t capacity, size_t most_events)
      : stage_(std::move(stage)), capacity_(std::max<int64_t>(1, capacity)),
        runs_(stage_, capacity_ - 1),
        events_(most_events) {}

  // A take that waits has room for one item in any case.
  bool HasRoomLocked(bool reserve) const WORKBENCH_REQUIRES(mu_) {
    return static_cast<int64_t>(items_.size()) < capacity_ - (reserve ? 1 : 0) ||
           !waiting_takes_.empty();
  }
  size_t WaitingProducersLocked() const WORKBENCH_REQUIRES(mu_) {
    return queued_puts_.size() + waiting_flushes_.size() + rest_.resting.size() + runs_.Waiting() +
           held_.puts.size();
  }
  bool EndedLocked() const WORKBENCH_REQUIRES(mu_) { return closed_ || cancelled_; }

  // An owner's session runs no producers any more, but may run them again.
  bool StoppedLocked() const WORKBENCH_REQUIRES(mu_) {
    return started_ && (cancelled_ || (closed_ && rest_.producers == 0));
  }

  // Whether a put that is refused leaves its record in the queue: the next run of its session
  // delivers it.
  bool KeepsLocked(const Ticket& ticket, int64_t token, int64_t thread) const
      WORKBENCH_REQUIRES(mu_);

  // What a take of an empty buffer gets after Cancel or Close.
  Outcome EndLocked() const WORKBENCH_REQUIRES(mu_) {
    return cancelled_ ? error_ : EndOfEpoch(stage_);
  }

  Outcome RefusalLocked(const char* call, const Ticket& ticket, int64_t token) const
      WORKBENCH_REQUIRES(mu_);
  Outcome TakeRefusalLocked(const Ticket& ticket, int64_t step, bool ahead) const
      WORKBENCH_REQUIRES(mu_);
  bool HasQueuedPutLocked(int64_t thread) const WORKBENCH_REQUIRES(mu_);
  void AdmitLocked(Record record, int64_t thread, int64_t start_ns, After* after)
      WORKBENCH_REQUIRES(mu_);
  void PopLocked(int64_t step, int64_t start_ns, TakeDone done, After* after)
      WORKBENCH_REQUIRES(mu_);

  // Hands items to the takes that wait for them.
  void ServeTakesLocked(After* after) WORKBENCH_REQUIRES(mu_);

  // Admits records of waiting puts while there is room. Afterwards a waiting put means that there
  // is no room for it, and a waiting take that the buffer and the queue of puts are empty.
  void AdmitQueuedLocked(After* after) WORKBENCH_REQUIRES(mu_);
  void EndFlushesLocked(int64_t thread, After* after) WORKBENCH_REQUIRES(mu_);
  void DropItemsLocked(const Outcome& of_await, After* after) WORKBENCH_REQUIRES(mu_);
  // Their runs have ended: what a step returned of them would be applied by nobody.
  void DropTrailingLocked(After* after) WORKBENCH_REQUIRES(mu_);

  // To be called when all producers may rest: ends restarts, and either ends the takes that wait or
  // wakes the producers for them.
  void SettleLocked(After* after) WORKBENCH_REQUIRES(mu_);
  void WakeForTakesLocked(After* after) WORKBENCH_REQUIRES(mu_);
  void WakeLocked(After* after) WORKBENCH_REQUIRES(mu_);
  void EndRestartsLocked(After* after) WORKBENCH_REQUIRES(mu_);

  // A put has its record in the buffer: it ends, or is held by a save.
  void EndPutLocked(const TicketPtr& ticket, Done done, After* after) WORKBENCH_REQUIRES(mu_);
  void ReleaseLocked(int64_t step, After* after) WORKBENCH_REQUIRES(mu_);
  // To be called when a producer may have been the last one that reads.
  void EndHoldsLocked(After* after) WORKBENCH_REQUIRES(mu_);
  void EndHeldPutsLocked(const Outcome& outcome, After* after) WORKBENCH_REQUIRES(mu_);

  template <typename End>
  void EndRestsLocked(const End& end, After* after) WORKBENCH_REQUIRES(mu_);
  void EndTakesLocked(const Outcome& outcome, After* after) WORKBENCH_REQUIRES(mu_);

  // Ends the takes that `ends` selects.
  template <typename Ends>
  void EndTakesLocked(const Outcome& outcome, After* after, const Ends& ends)
      WORKBENCH_REQUIRES(mu_);

  // Ends all puts and flushes that wait and, if `takes`, the takes. `end` gives the outcome of a
  // call.
  template <typename End>
  void EndWaitsLocked(const End& end, bool takes, After* after) WORKBENCH_REQUIRES(mu_);

  // Ends all puts and flushes that wait; records stay in the queue.
  template <typename End>
  void ParkPutsLocked(const End& end, After* after) WORKBENCH_REQUIRES(mu_);
  void SetDeadlineLocked(const TicketPtr& ticket, int64_t timeout_millis) WORKBENCH_REQUIRES(mu_);
  void ClearDeadlineLocked(Ticket& ticket) WORKBENCH_REQUIRES(mu_);
  void OnDeadline(const TicketPtr& ticket);

  // Ends the waiting call of this ticket with end(call, its timeout). A parked put has ended.
  template <typename End>
  void RemoveLocked(const TicketPtr& ticket, After* after, const End& end) WORKBENCH_REQUIRES(mu_);

  const std::string stage_;
  const int64_t capacity_;

  mutable std::mutex mu_;
  int64_t token_ WORKBENCH_GUARDED_BY(mu_) = 0;
  // Of the owner's session: a late put of an earlier run has a record of an earlier epoch.
  int64_t first_run_ WORKBENCH_GUARDED_BY(mu_) = 0;
  // Some owner has come; from then on takes wait without limit.
  bool started_ WORKBENCH_GUARDED_BY(mu_) = false;
  bool closed_ WORKBENCH_GUARDED_BY(mu_) = false;
  bool cancelled_ WORKBENCH_GUARDED_BY(mu_) = false;
  Outcome error_ WORKBENCH_GUARDED_BY(mu_);  // Of Cancel.
  bool keeps_ WORKBENCH_GUARDED_BY(mu_) = false;  // Queued records, after Cancel.
  int64_t next_number_ WORKBENCH_GUARDED_BY(mu_) = 0;
  std::deque<Item> items_ WORKBENCH_GUARDED_BY(mu_);
  std::vector<Record> preloaded_ WORKBENCH_GUARDED_BY(mu_);  // Until an owner comes.
  std::list<QueuedPut> queued_puts_ WORKBENCH_GUARDED_BY(mu_);
  std::list<WaitingFlush> waiting_flushes_ WORKBENCH_GUARDED_BY(mu_);
  std::list<WaitingTake> waiting_takes_ WORKBENCH_GUARDED_BY(mu_);
  ProducersHeld held_ WORKBENCH_GUARDED_BY(mu_);
  ProducersAtRest rest_ WORKBENCH_GUARDED_BY(mu_);
  TrailingRuns<Record> runs_ WORKBENCH_GUARDED_BY(mu_);
  // Null until a call waits with a limit.
  std::shared_ptr<DeadlineThread> deadlines_ WORKBENCH_GUARDED_BY(mu_);
  BufferEvents events_ WORKBENCH_GUARDED_BY(mu_);
};

}  // namespace workbench

#include "staging/buffer/stage_buffer_calls_inl.h"
#include "staging/buffer/stage_buffer_saves_inl.h"
#include "staging/buffer/stage_buffer_trailing_inl.h"
#include "staging/buffer/stage_buffer_waits_inl.h"

#endif  // WORKBENCH_STAGING_BUFFER_STAGE_BUFFER_H_
