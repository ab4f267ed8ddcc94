#ifndef WORKBENCH_REGISTRATION_GUARDED_PASS_H_
#define WORKBENCH_REGISTRATION_GUARDED_PASS_H_

#include "registration/caught.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"

namespace workbench {

// A pass over a graph out of which no exception comes.
template <class Pass>
class GuardedPass : public Pass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override {
    absl::Status status;
    status.Update(Caught([&] { status = Pass::Run(options); }));
    return status;
  }
};

}  // namespace workbench

#endif  // WORKBENCH_REGISTRATION_GUARDED_PASS_H_
