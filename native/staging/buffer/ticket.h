#ifndef WORKBENCH_STAGING_BUFFER_TICKET_H_
#define WORKBENCH_STAGING_BUFFER_TICKET_H_

#include <cstdint>

#include "staging/buffer/deadline.h"

namespace workbench {

// Identifies one call on a buffer, so that it can be cancelled while it waits. Used once.
class Ticket {
 private:
  template <typename Record>
  friend class StageBuffer;
  // Guarded by the buffer's lock. Set before the call comes in, it cancels the call at once.
  bool cancelled = false;
  DeadlineThread::Id deadline = DeadlineThread::kNone;
  int64_t timeout_millis = 0;  // After which the deadline is.
};

}  // namespace workbench

#endif  // WORKBENCH_STAGING_BUFFER_TICKET_H_
