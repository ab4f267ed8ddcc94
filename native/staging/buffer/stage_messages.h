#ifndef WORKBENCH_STAGING_BUFFER_STAGE_MESSAGES_H_
#define WORKBENCH_STAGING_BUFFER_STAGE_MESSAGES_H_

#include <cstdint>
#include <string>

#include "staging/buffer/outcome.h"

namespace workbench {

// The words of a stage's buffer: how each call can end other than well.
// workbench/core/staging/buffer.py tells a parked put, a superseded and a restarted call, and one
// whose batch was not trained on, by these texts.

Outcome PutTimedOut(const std::string& stage, int64_t capacity, int64_t timeout_millis);
Outcome FlushTimedOut(const std::string& stage, int64_t capacity, int64_t timeout_millis);
Outcome NeverStarted(const std::string& stage, int64_t timeout_millis);
Outcome NotResumed(const std::string& stage, const char* call);
Outcome Superseded(const std::string& stage, const char* call);
Outcome PutAfterClose(const std::string& stage);
Outcome CallCancelled(const std::string& stage, const char* call, const std::string& why);
Outcome StepCancelled(const std::string& stage, const char* call);
Outcome Restarted(const std::string& stage, const char* call);
Outcome TakeWhileInitializing(const std::string& stage);
Outcome NotReady(const std::string& stage, const std::string& why);
Outcome RestartCutShort(const std::string& stage);
Outcome HoldTimedOut(const std::string& stage, int64_t timeout_millis);
Outcome HoldOfTrailing(const std::string& stage);
Outcome BufferDestroyed(const std::string& stage, const char* call);
Outcome EndOfEpoch(const std::string& stage);
Outcome NotTrained(const std::string& stage);
Outcome AwaitsNothing(const std::string& stage);
Outcome ReturnsOfNothing(const std::string& stage);

// A step takes from the stage and reads `source`, which the stage reads, by itself.
Outcome PartsOfTwoItems(const std::string& stage, const std::string& source);

// Another op fixed `found`, this one asks for `asked`.
Outcome CapacityMismatch(const std::string& stage, int64_t found, int64_t asked);

}  // namespace workbench

#endif  // WORKBENCH_STAGING_BUFFER_STAGE_MESSAGES_H_
