#ifndef WORKBENCH_STAGING_BUFFER_PRODUCERS_HELD_H_
#define WORKBENCH_STAGING_BUFFER_PRODUCERS_HELD_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "staging/buffer/outcome.h"

namespace workbench {

class Ticket;

// The producers that a save of the input holds between two items, and the saves that wait until all
// are held. Plain data, guarded by the lock of the buffer that has it.
struct ProducersHeld {
  struct Call {
    std::shared_ptr<Ticket> ticket;
    int64_t timeout_millis;
    std::function<void(const Outcome&)> done;
  };

  std::vector<int64_t> saving;  // Steps between Hold and Release.
  std::list<Call> puts;         // Their items are in the buffer; they end with the release.
  std::list<Call> waiting;      // Saves.

  bool Any() const { return !saving.empty(); }
  void Forget(int64_t step) {
    const auto found = std::find(saving.begin(), saving.end(), step);
    if (found != saving.end()) saving.erase(found);
  }
};

}  // namespace workbench

#endif  // WORKBENCH_STAGING_BUFFER_PRODUCERS_HELD_H_
