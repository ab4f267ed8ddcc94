#include "staging/buffer/stage_messages.h"

namespace workbench {
namespace {

std::string Stage(const std::string& stage) { return "stage '" + stage + "'"; }

std::string NoRoom(int64_t capacity, int64_t timeout_millis) {
  return "found no room for " + std::to_string(timeout_millis) + " ms in its buffer of capacity " +
         std::to_string(capacity) +
         "; the batch stays in line and none is lost. Likely cause: nobody takes, as in an "
         "evaluation session that runs no step of the stage, or the consumer has stopped";
}

Outcome Cancelled(const std::string& text) { return {Code::kCancelled, text}; }

}  // namespace

Outcome PutTimedOut(const std::string& stage, int64_t capacity, int64_t timeout_millis) {
  return {Code::kDeadlineExceeded,
          "put of " + Stage(stage) + " " + NoRoom(capacity, timeout_millis)};
}

Outcome FlushTimedOut(const std::string& stage, int64_t capacity, int64_t timeout_millis) {
  return {Code::kDeadlineExceeded,
          "flush of " + Stage(stage) + " " + NoRoom(capacity, timeout_millis)};
}

Outcome NeverStarted(const std::string& stage, int64_t timeout_millis) {
  return {Code::kFailedPrecondition,
          "take of " + Stage(stage) + " waited " + std::to_string(timeout_millis) +
              " ms, but no prefetch runner was ever started for it in this session; add "
              "workbench's make_prefetch_hook() to the session's hooks"};
}

Outcome NotResumed(const std::string& stage, const char* call) {
  return {Code::kFailedPrecondition, std::string(call) + " of " + Stage(stage) +
                                         " before any resume: the buffer has no owner; run resume "
                                         "with the same token first"};
}

Outcome Superseded(const std::string& stage, const char* call) {
  return Cancelled(std::string(call) + " of " + Stage(stage) +
                   " was cancelled: a newer session owns the stage");
}

Outcome PutAfterClose(const std::string& stage) {
  return Cancelled("put of " + Stage(stage) +
                   " was cancelled: the stage is closed, its epoch has ended; resume opens it");
}

Outcome CallCancelled(const std::string& stage, const char* call, const std::string& why) {
  std::string text = std::string(call) + " of " + Stage(stage) + " was cancelled";
  if (!why.empty()) text += ": " + why;
  return Cancelled(text);
}

Outcome StepCancelled(const std::string& stage, const char* call) {
  return Cancelled(std::string(call) + " of " + Stage(stage) +
                   " was cancelled with its step, by a timeout of the step or because its session "
                   "was closed");
}

Outcome Restarted(const std::string& stage, const char* call) {
  return Cancelled(std::string(call) + " of " + Stage(stage) +
                   " was cancelled: the stage begins again, because its input is initialized again");
}

Outcome TakeWhileInitializing(const std::string& stage) {
  return {Code::kFailedPrecondition,
          "take of " + Stage(stage) +
              " is in the run that initializes the input of the stage again; run the initializer "
              "in a run of its own, without hooks that fetch what the stage delivers"};
}

Outcome NotReady(const std::string& stage, const std::string& why) {
  return {Code::kFailedPrecondition,
          "take of " + Stage(stage) + " finds nothing: its producers could not begin: " + why};
}

Outcome RestartCutShort(const std::string& stage) {
  return {Code::kFailedPrecondition,
          "take of " + Stage(stage) +
              " finds nothing: its input was to be initialized again, but the run was cancelled, or "
              "waited too long for the producers of the stage to finish reading. What was read "
              "ahead is gone; run the initializer again"};
}

Outcome HoldTimedOut(const std::string& stage, int64_t timeout_millis) {
  return {Code::kDeadlineExceeded,
          "the state of the input of " + Stage(stage) + " was not saved: its producers did not "
          "finish reading within " + std::to_string(timeout_millis) +
              " ms. Likely cause: the input waits for data; save again later"};
}

Outcome HoldOfTrailing(const std::string& stage) {
  return {Code::kFailedPrecondition,
          "the state of the input of " + Stage(stage) + " was not saved: updates of its batches "
          "trail, and no batch that was read ahead could be updated after a restore. Save it "
          "without trailing updates (SmartStageOptions.stale_lookups=0)"};
}

Outcome BufferDestroyed(const std::string& stage, const char* call) {
  return Cancelled(std::string(call) + " of " + Stage(stage) +
                   " was cancelled: its buffer was removed with its container");
}

Outcome EndOfEpoch(const std::string& stage) {
  return {Code::kOutOfRange,
          Stage(stage) + " has ended: its producers reached the end of their input and every item "
                         "was taken"};
}

Outcome NotTrained(const std::string& stage) {
  return CallCancelled(stage, "await",
                       "the step that took its batch trained nothing on it, or failed");
}

Outcome AwaitsNothing(const std::string& stage) {
  return CallCancelled(stage, "await", "its run has put no batch that a step could take");
}

Outcome ReturnsOfNothing(const std::string& stage) {
  return {Code::kFailedPrecondition,
          "a step returns an update to " + Stage(stage) +
              ", but took no batch from it, so that no run of the stage waits to apply it. Likely "
              "cause: what the stage delivers was fed, or its batch had been taken under another "
              "session"};
}

Outcome PartsOfTwoItems(const std::string& stage, const std::string& source) {
  return {Code::kFailedPrecondition,
          "a step takes an item of " + Stage(stage) + ", which reads '" + source + "', and reads '" +
              source + "' itself: what it gives there belongs to another item, so rows of features "
              "and labels do not belong together. Stage all that the step reads of it: "
              "wb.staged((features, labels))"};
}

Outcome CapacityMismatch(const std::string& stage, int64_t found, int64_t asked) {
  return {Code::kInvalidArgument, Stage(stage) + " has a buffer of capacity " +
                                      std::to_string(found) + ", but this op asks for capacity " +
                                      std::to_string(asked) +
                                      "; give all ops of one buffer the same capacity"};
}

}  // namespace workbench
