#ifndef WORKBENCH_STAGING_BUFFER_PRODUCERS_AT_REST_H_
#define WORKBENCH_STAGING_BUFFER_PRODUCERS_AT_REST_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "staging/buffer/outcome.h"

namespace workbench {

class Ticket;

// Why a producer has nothing to put for now, and so what wakes it.
enum class RestReason : int {
  kReady = 0,   // It may try at once: a waiting take wakes it.
  kEnded = 1,   // Its input has ended: waiting takes get the end; a later take wakes it to look.
  kClosed = 2,  // Its input was ended by a rule of the stage: only a restart wakes it.
  kNotReady = 3,  // It needs what is not initialized yet: as kReady, but other stages don't wake it.
};

// The resting producers of a buffer's owner, and the initializers of its input that wait for them.
// Plain data, guarded by the lock of the buffer that has it.
struct ProducersAtRest {
  struct Resting {
    std::shared_ptr<Ticket> ticket;
    RestReason reason;
    std::string message;  // Of kNotReady: what is not initialized.
    std::function<void(const Outcome&)> done;
  };
  struct Restarting {
    std::shared_ptr<Ticket> ticket;
    std::function<void(const Outcome&)> done;
  };

  int64_t producers = 0;  // Of the owner; 0 when it has not said how many, and none ever rests.
  std::list<Resting> resting;
  std::list<Restarting> restarting;
  std::vector<int64_t> initializing;  // Steps that initialize the input; they may be over the rest.
  bool cut_short = false;  // A restart ended before all were at rest, and no other has come since.

  bool All() const {
    return producers > 0 && static_cast<int64_t>(resting.size()) >= producers;
  }
  bool Any(RestReason reason) const {
    return std::any_of(resting.begin(), resting.end(),
                       [reason](const Resting& each) { return each.reason == reason; });
  }
  bool HaveEnded() const {
    return All() && !Any(RestReason::kReady) && !Any(RestReason::kNotReady);
  }
  // Null when none found something that is not initialized.
  const Resting* NotReady() const {
    const auto found =
        std::find_if(resting.begin(), resting.end(), [](const Resting& each) {
          return each.reason == RestReason::kNotReady;
        });
    return found == resting.end() ? nullptr : &*found;
  }
  bool IsInitializing(int64_t step) const {
    return std::find(initializing.begin(), initializing.end(), step) != initializing.end();
  }
  // Whether what a producer has in hand belongs to the epoch before.
  bool RefusesPuts() const { return cut_short || !restarting.empty(); }
};

}  // namespace workbench

#endif  // WORKBENCH_STAGING_BUFFER_PRODUCERS_AT_REST_H_
