#ifndef WORKBENCH_STAGING_BUFFER_TRAILING_RUNS_H_
#define WORKBENCH_STAGING_BUFFER_TRAILING_RUNS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "staging/buffer/after_unlock.h"
#include "staging/buffer/outcome.h"
#include "staging/buffer/stage_messages.h"
#include "staging/buffer/ticket.h"

namespace workbench {

// The runs of a staged side whose updates trail: a run reads what its item needs, puts the item,
// waits for what the step that takes it returns, applies that, and is closed when its producer
// begins the next one. So one run of the staged side has both ways to a distant variable.
//
// Order. Runs are numbered as they ask to begin. One begins when the run before has put its item,
// so that items are in the order of the runs, and when all runs are closed that are `most_behind`
// or more numbers before the one before it: what it reads lacks the updates of at most
// `most_behind` items, those right before its own.
//
// A step that ends without returning anything releases its run, whose wait then ends with
// NotTrained. Settle waits until what had been returned when it came has been applied.
//
// The lock of the buffer that has it guards it.
template <typename Record>
class TrailingRuns {
 public:
  using After = AfterUnlock<Record>;
  using Done = typename After::Done;
  using TakeDone = typename After::TakeDone;
  using TicketPtr = std::shared_ptr<Ticket>;

  TrailingRuns(std::string stage, int64_t most_behind)
      : stage_(std::move(stage)), most_behind_(most_behind) {}

  // Closes the producer's run before, and ends when this one may read.
  void Begin(const TicketPtr& ticket, int64_t thread, Done done, After* after) {
    Close(thread, after);
    Run& run = runs_.emplace_back();
    run.number = next_number_++;
    run.thread = thread;
    run.ticket = ticket;
    run.begun = std::move(done);
    Advance(after);
  }

  // The producer's run has put its item; its number, or -1 if it has not begun one here.
  int64_t Put(int64_t thread, After* after) {
    for (Run& run : runs_) {
      if (run.thread != thread || run.state != State::kReads) continue;
      run.state = State::kPut;
      const int64_t number = run.number;
      Advance(after);
      return number;
    }
    return -1;
  }

  // A step takes the item of the run of this number.
  void Take(int64_t number, int64_t step) {
    for (Run& run : runs_) {
      if (run.number != number) continue;
      run.state = State::kTaken;
      run.step = step;
    }
  }

  // The item of the run of this number is gone.
  void Drop(int64_t number, const Outcome& outcome, After* after) {
    for (Run& run : runs_) {
      if (run.number == number) End(run, outcome, after);
    }
  }

  // Waits for what is returned of the item of the producer's run.
  void Await(const TicketPtr& ticket, int64_t thread, TakeDone done, After* after) {
    for (Run& run : runs_) {
      if (run.thread != thread || run.state < State::kPut) continue;
      if (run.returned.has_value()) {
        after->HandOver(std::move(done), *std::exchange(run.returned, std::nullopt));
      } else if (!run.end.ok()) {
        after->Call(std::move(done), run.end);
      } else {
        run.ticket = ticket;
        run.awaited = std::move(done);
      }
      return;
    }
    after->Call(std::move(done), AwaitsNothing(stage_));
  }

  // What a step returns of the item that it took.
  Outcome Return(int64_t step, Record record, After* after) {
    for (Run& run : runs_) {
      if (run.state != State::kTaken || run.step != step) continue;
      if (!run.end.ok()) {
        after->dropped.push_back(std::move(record));
        return run.end;
      }
      run.state = State::kReturned;
      if (run.awaited) {
        after->HandOver(std::exchange(run.awaited, nullptr), std::move(record));
      } else {
        run.returned.emplace(std::move(record));
      }
      return Outcome();
    }
    after->dropped.push_back(std::move(record));
    return ReturnsOfNothing(stage_);
  }

  // The step has ended: where it returned nothing, it never will.
  void EndStep(int64_t step, After* after) {
    for (Run& run : runs_) {
      if (run.state == State::kTaken && run.step == step) End(run, NotTrained(stage_), after);
    }
  }

  // The producer's run has ended.
  void Close(int64_t thread, After* after) {
    const size_t before = runs_.size();
    for (auto run = runs_.begin(); run != runs_.end();) {
      if (run->thread != thread) {
        ++run;
        continue;
      }
      if (run->returned.has_value()) after->dropped.push_back(std::move(*run->returned));
      run = runs_.erase(run);
    }
    if (runs_.size() == before) return;
    EndSettled(after);
    Advance(after);
  }

  void Settle(const TicketPtr& ticket, Done done, After* after) {
    int64_t last = -1;
    for (const Run& run : runs_) {
      if (run.state == State::kReturned) last = run.number;
    }
    settling_.push_back({ticket, last, std::move(done)});
    EndSettled(after);
  }

  // Ends what waits of the runs that have no item yet: `end` gives the outcome of a call.
  template <typename EndOf>
  void EndBegins(const EndOf& end, After* after) {
    for (auto run = runs_.begin(); run != runs_.end();) {
      if (run->state != State::kBegins) {
        ++run;
        continue;
      }
      after->Call(std::move(run->begun), end("begin"));
      run = runs_.erase(run);
    }
  }

  // Ends the waits for items that no step has taken, and what their steps return later.
  void EndUntaken(const Outcome& outcome, After* after) {
    for (Run& run : runs_) {
      if (run.state == State::kPut) End(run, outcome, after);
    }
  }

  void EndSettling(const Outcome& outcome, After* after) {
    for (Settling& each : settling_) after->Call(std::move(each.done), outcome);
    settling_.clear();
  }

  // Forgets every run; their producers are another owner's.
  template <typename EndOf>
  void Clear(const EndOf& end, After* after) {
    EndBegins(end, after);
    for (Run& run : runs_) {
      if (run.awaited) after->Call(std::move(run.awaited), end("await"));
      if (run.returned.has_value()) after->dropped.push_back(std::move(*run.returned));
    }
    runs_.clear();
    EndSettling(Outcome(), after);
  }

  bool Empty() const { return runs_.empty(); }

  // Whether the producer has a run that is not closed.
  bool Has(int64_t thread) const {
    return std::any_of(runs_.begin(), runs_.end(),
                       [thread](const Run& run) { return run.thread == thread; });
  }

  // Calls of producers that wait here.
  size_t Waiting() const {
    return std::count_if(runs_.begin(), runs_.end(), [](const Run& run) {
      return run.begun != nullptr || run.awaited != nullptr;
    });
  }

  // Ends the call of this ticket, if it waits here, with end(call).
  template <typename EndOf>
  void Remove(const TicketPtr& ticket, const EndOf& end, After* after) {
    const auto settling = std::find_if(settling_.begin(), settling_.end(), [&](const auto& each) {
      return each.ticket == ticket;
    });
    if (settling != settling_.end()) {
      after->Call(std::move(settling->done), end("settle"));
      settling_.erase(settling);
      return;
    }
    const auto run = std::find_if(runs_.begin(), runs_.end(),
                                  [&](const Run& each) { return each.ticket == ticket; });
    if (run == runs_.end()) return;
    if (run->state == State::kBegins) {
      after->Call(std::move(run->begun), end("begin"));
      runs_.erase(run);
      Advance(after);
    } else if (run->awaited) {
      after->Call(std::exchange(run->awaited, nullptr), end("await"));
    }
  }

 private:
  enum class State : int { kBegins, kReads, kPut, kTaken, kReturned };

  struct Run {
    int64_t number = 0;
    int64_t thread = 0;
    State state = State::kBegins;
    int64_t step = 0;  // That took its item.
    std::optional<Record> returned;  // Until it is handed over.
    Outcome end;  // Unless it is well: what its wait gets, for nothing will be returned.
    TicketPtr ticket;  // Of the call that waits.
    Done begun;
    TakeDone awaited;
  };
  struct Settling {
    TicketPtr ticket;
    int64_t last;  // The number of the last run that it waits for.
    Done done;
  };

  void Advance(After* after) {
    const Run* before = nullptr;
    for (Run& run : runs_) {
      if (run.state == State::kBegins) {
        if (before != nullptr && before->state < State::kPut) return;
        if (run.number - runs_.front().number > most_behind_) return;
        run.state = State::kReads;
        after->Call(std::exchange(run.begun, nullptr), Outcome());
      }
      before = &run;
    }
  }

  void End(Run& run, const Outcome& outcome, After* after) {
    run.end = outcome;
    if (run.awaited) after->Call(std::exchange(run.awaited, nullptr), outcome);
  }

  void EndSettled(After* after) {
    settling_.remove_if([&](Settling& each) {
      const bool open = std::any_of(runs_.begin(), runs_.end(), [&](const Run& run) {
        return run.state == State::kReturned && run.number <= each.last;
      });
      if (!open) after->Call(std::move(each.done), Outcome());
      return !open;
    });
  }

  const std::string stage_;
  const int64_t most_behind_;
  int64_t next_number_ = 0;
  std::list<Run> runs_;  // Those that are not closed, in the order of their numbers.
  std::list<Settling> settling_;
};

}  // namespace workbench

#endif  // WORKBENCH_STAGING_BUFFER_TRAILING_RUNS_H_
