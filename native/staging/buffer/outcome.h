#ifndef WORKBENCH_STAGING_BUFFER_OUTCOME_H_
#define WORKBENCH_STAGING_BUFFER_OUTCOME_H_

#include <string>

namespace workbench {

// How a call on a buffer ended. The numbers are those of absl::StatusCode, so that a kernel may
// cast them; the plain algorithm needs no TensorFlow header for it.
enum class Code : int {
  kOk = 0,
  kCancelled = 1,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kFailedPrecondition = 9,
  kOutOfRange = 11,
};

struct Outcome {
  Code code = Code::kOk;
  std::string message;

  bool ok() const { return code == Code::kOk; }
};

}  // namespace workbench

#endif  // WORKBENCH_STAGING_BUFFER_OUTCOME_H_
