#include "staging/step/step_end.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/resource_mgr.h"

namespace workbench {
namespace {

using tensorflow::OpKernelContext;

// In the container of the step, whose end destroys it.
class StepHold : public tensorflow::ResourceBase {
 public:
  explicit StepHold(std::function<void()> then) : then_(std::move(then)) {}
  ~StepHold() override { then_(); }
  std::string DebugString() const override { return "hold of a stage"; }

 private:
  const std::function<void()> then_;
};

}  // namespace

absl::Status AtStepEnd(OpKernelContext* context, std::function<void()> then) {
  // In a loop an op runs more than once in a step.
  static std::atomic<int64_t> next{0};
  return context->step_container()->Create(
      context->resource_manager(),
      absl::StrCat(context->op_kernel().name(), "/", next.fetch_add(1)),
      new StepHold(std::move(then)));
}

}  // namespace workbench
