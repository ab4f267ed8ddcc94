#ifndef WORKBENCH_REGISTRATION_CAUGHT_H_
#define WORKBENCH_REGISTRATION_CAUGHT_H_

#include <exception>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace workbench {

// Runs `work`; what it throws becomes an error.
//
// The standard library throws where memory ends. TensorFlow catches nothing: an exception that
// reaches it ends the process.
template <class Work>
absl::Status Caught(const Work& work) {
  try {
    work();
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory; use smaller batches or tables");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("unexpected: ", error.what()));
  }
}

}  // namespace workbench

#endif  // WORKBENCH_REGISTRATION_CAUGHT_H_
