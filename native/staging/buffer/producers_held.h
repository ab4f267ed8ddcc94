#ifndef WORKBENCH_STAGING_BUFFER_PRODUCERS_HELD_H_
#define WORKBENCH_STAGING_BUFFER_PRODUCERS_HELD_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "staging/buffer/outcome.h"

namespace workbench {

class Ticket;

// The producers that a save of the input holds between two items, and the saves that wait until all
// are held. Plain data, guarded by the lock of the buffer that has it.
struct ProducersHeld {
  struct Call {
    std::shared_ptr<Ticket> ticket;
    std::function<void(const Outcome&)> done;
  };

  struct Saving {
    int64_t step;
    bool has_state = false;
  };

  std::vector<Saving> saving;   // Between Hold and the end of the step.
  std::list<Call> puts;         // Their items are in the buffer; they end with the release.
  std::list<Call> waiting;      // Saves.

  bool Any() const { return !saving.empty(); }
  // The first save of the step that has none has its state.
  void NoteState(int64_t step) {
    for (Saving& each : saving) {
      if (each.step == step && !std::exchange(each.has_state, true)) return;
    }
  }
  // Whether the step has saved all that it saves so far.
  bool HasState(int64_t step) const {
    const auto is_of_step = [step](const Saving& each) { return each.step == step; };
    return std::any_of(saving.begin(), saving.end(), is_of_step) &&
           std::all_of(saving.begin(), saving.end(), [&](const Saving& each) {
             return !is_of_step(each) || each.has_state;
           });
  }
  void Forget(int64_t step) {
    saving.erase(std::remove_if(saving.begin(), saving.end(),
                                [step](const Saving& each) { return each.step == step; }),
                 saving.end());
  }
};

}  // namespace workbench

#endif  // WORKBENCH_STAGING_BUFFER_PRODUCERS_HELD_H_
