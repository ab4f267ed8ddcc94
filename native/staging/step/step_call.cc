#include "staging/step/step_call.h"

#include <utility>

#include "tensorflow/core/platform/env.h"

namespace workbench {

using tensorflow::AsyncOpKernel;
using tensorflow::CancellationManager;
using tensorflow::OpKernelContext;

std::shared_ptr<StepCall> StepCall::Begin(OpKernelContext* context,
                                          const std::shared_ptr<TensorBuffer>& buffer,
                                          AsyncOpKernel::DoneCallback done) {
  auto call = std::make_shared<StepCall>(context, std::move(done));
  CancellationManager* manager = context->cancellation_manager();
  if (manager == nullptr) return call;
  call->token_ = manager->get_cancellation_token();
  call->registered_ = manager->RegisterCallback(
      call->token_, [weak = std::weak_ptr<TensorBuffer>(buffer), ticket = call->ticket_] {
        if (auto alive = weak.lock()) alive->CancelCall(ticket);
      });
  if (!call->registered_) buffer->CancelCall(call->ticket_);
  return call;
}

StepCall::StepCall(OpKernelContext* context, AsyncOpKernel::DoneCallback done)
    : context_(context),
      done_(std::move(done)),
      ticket_(std::make_shared<Ticket>()),
      caller_(std::this_thread::get_id()) {}

void StepCall::End(const absl::Status& status) const {
  if (registered_) context_->cancellation_manager()->TryDeregisterCallback(token_);
  if (!status.ok()) context_->SetStatus(status);
  if (context_->run_all_kernels_inline() && std::this_thread::get_id() != caller_) {
    // Such a step may go on within done: on the thread of a put it would hold its producer up. On
    // the intra-op workers, as many steps as workers would wait for each other without end: the
    // kernels of a step hand their work to those workers and wait for it.
    EndElsewhere();
  } else {
    done_();
  }
}

void StepCall::EndElsewhere() const {
  static thread_local bool handing_over = false;
  // A copy: once done has run, the step that owns the runner may be gone.
  const auto run = *context_->runner();
  handing_over = true;
  run([done = done_] {
    if (handing_over) {
      tensorflow::Env::Default()->SchedClosure(done);
    } else {
      done();
    }
  });
  handing_over = false;
}

TensorBuffer::Done EndWithOutcome(std::shared_ptr<StepCall> call) {
  return [call = std::move(call)](const Outcome& outcome) { call->End(ToStatus(outcome)); };
}

}  // namespace workbench
