#ifndef WORKBENCH_STAGING_STEP_STEP_CALL_H_
#define WORKBENCH_STAGING_STEP_STEP_CALL_H_

#include <memory>
#include <thread>

#include "staging/buffer_resource.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace workbench {

// One waiting call of an asynchronous kernel on a buffer, tied to its step: cancelling the step
// ends the call.
class StepCall {
 public:
  // From now on the step's cancellation ends the call. The call on the buffer, with this ticket,
  // must follow: a cancellation in between is not missed, because the ticket remembers it.
  static std::shared_ptr<StepCall> Begin(tensorflow::OpKernelContext* context,
                                         const std::shared_ptr<TensorBuffer>& buffer,
                                         tensorflow::AsyncOpKernel::DoneCallback done);

  StepCall(tensorflow::OpKernelContext* context, tensorflow::AsyncOpKernel::DoneCallback done);

  tensorflow::OpKernelContext* context() const { return context_; }
  const std::shared_ptr<Ticket>& ticket() const { return ticket_; }

  // Ends the op. The callback of the cancellation may still run, or may be what called this: it
  // owns what it touches, so nothing waits for it, which could deadlock.
  void End(const absl::Status& status) const;

 private:
  // On a thread of the run's pool. A pool without threads runs `done` at once, on this thread: then
  // on a new one.
  void EndElsewhere() const;

  tensorflow::OpKernelContext* const context_;
  const tensorflow::AsyncOpKernel::DoneCallback done_;
  const std::shared_ptr<Ticket> ticket_;
  const std::thread::id caller_;
  tensorflow::CancellationToken token_ = 0;
  bool registered_ = false;
};

// Ends the op with the outcome of its call on the buffer.
TensorBuffer::Done EndWithOutcome(std::shared_ptr<StepCall> call);

}  // namespace workbench

#endif  // WORKBENCH_STAGING_STEP_STEP_CALL_H_
