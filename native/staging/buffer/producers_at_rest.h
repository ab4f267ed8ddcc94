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

// Why a producer has nothing to put for now, which decides what wakes it.
enum class RestReason : int {
  kReady = 0,     // It may try at once: a waiting take wakes it.
  kEnded = 1,     // Its input has ended: waiting takes get the end; a later take wakes it to look.
  kClosed = 2,    // A rule of the stage ended its input: only a restart wakes it.
  kNotReady = 3,  // It needs a resource that is not initialized yet: as kReady, but takes of other
                  // stages do not wake it.
  kCutShort = 4,  // A stage that its input reads was to be restarted, which was cut short: so was
                  // this stage.
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

  int64_t producers = 0;  // Of the owner; 0: the owner did not say how many, and none ever rests.
  std::list<Resting> resting;
  std::list<Restarting> restarting;
  std::vector<int64_t> initializing;  // Steps between Restart and EndRestart.
  bool cut_short = false;  // The last restart, here or in a stage before, ended too early.

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
  // A producer that rests with kNotReady, or null.
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
  // Whether the records that producers hold now belong to the epoch before.
  bool RefusesPuts() const { return cut_short || !restarting.empty(); }
};

}  // namespace workbench

#endif  // WORKBENCH_STAGING_BUFFER_PRODUCERS_AT_REST_H_
