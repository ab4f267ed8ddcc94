#ifndef WORKBENCH_THREADING_FIRST_ERROR_H_
#define WORKBENCH_THREADING_FIRST_ERROR_H_

#include <cstdint>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "threading/guarded_by.h"

namespace workbench {

// Of the errors that several threads find, that of the first part.
class FirstError {
 public:
  void Found(int64_t part, absl::Status error) {
    const std::lock_guard<std::mutex> hold(mu_);
    if (!error_.ok() && part_ < part) return;
    part_ = part;
    error_ = std::move(error);
  }

  // Once all threads have found theirs.
  const absl::Status& status() const { return error_; }

 private:
  std::mutex mu_;
  int64_t part_ WORKBENCH_GUARDED_BY(mu_) = 0;
  absl::Status error_;
};

}  // namespace workbench

#endif  // WORKBENCH_THREADING_FIRST_ERROR_H_
