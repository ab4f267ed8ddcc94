#include "executor/step/step_frame.h"

#include <utility>

#include "absl/synchronization/notification.h"
#include "executor/step/observed_node.h"
#include "tensorflow/core/common_runtime/renamed_device.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/collective.h"
#include "tensorflow/core/framework/log_memory.h"
#include "tensorflow/core/framework/rendezvous.h"

namespace workbench {
namespace {

using tensorflow::OpKernelContext;
using tensorflow::StatusGroup;

}  // namespace

StepFrame::StepFrame(const ExecutorState& executor, const tensorflow::Executor::Args& args)
    : executor_(executor), args_(args), device_(executor.device()) {
  if (args.user_intra_op_threadpool != nullptr) {
    own_device_ = tensorflow::RenamedDevice::NewRenamedDevice(
        device_->name(), device_, /*owns_underlying=*/false, /*isolate_session_state=*/false,
        args.user_intra_op_threadpool);
    device_ = own_device_.get();
  }
  observers_.events = OpEvents::Get().recording();
  observers_.profiler = tsl::profiler::TraceMe::Active(ObservedNode::kProfilerLevel) ||
                    tsl::profiler::ScopedAnnotation::IsEnabled();
  observers_.stats = args.stats_collector;
  if (observers_.events) {
    observers_.first_node = executor.FirstTracedNode();
    observers_.run = OpEvents::Get().BeginRun(args.step_id, executor.number());
  }
}

StepFrame::~StepFrame() {
  if (observers_.events) OpEvents::Get().EndRun(observers_.run);
  if (device_context_ != nullptr) device_context_->Unref();
}

absl::Status StepFrame::Begin() {
  TF_RETURN_IF_ERROR(device_->TryGetDeviceContext(&device_context_));
  CostModel* model = executor_.cost_model();
  observers_.learning = model != nullptr && model->BeginStep();
  return absl::OkStatus();
}

void StepFrame::Fill(OpKernelContext::Params* params) {
  params->step_id = args_.step_id;
  params->start_time_usecs = args_.start_time_usecs;
  params->deadline = args_.deadline;
  params->device = device_;
  params->log_memory = tensorflow::LogMemory::IsEnabled();
  params->rendezvous = args_.rendezvous;
  params->collective_executor = args_.collective_executor;
  params->session_config = args_.session_config;
  params->session_state = args_.session_state;
  params->session_handle = args_.session_handle;
  params->session_metadata = executor_.params().session_metadata;
  params->tensor_store = args_.tensor_store;
  params->cancellation_manager = args_.cancellation_manager;
  params->coordination_service_agent = args_.coordination_service_agent;
  params->stack_trace = args_.stack_trace;
  params->call_frame = args_.call_frame;
  params->function_library = executor_.params().function_library;
  params->resource_manager = device_->resource_manager();
  params->step_container = args_.step_container;
  params->op_device_context = device_context_;
  params->runner = const_cast<tensorflow::Executor::Args::Runner*>(&args_.runner);
  params->run_all_kernels_inline =
      args_.run_all_kernels_inline || executor_.policy() == ExecutorPolicy::kInline;
  params->stats_collector = args_.stats_collector;
  params->executor_type = &executor_.type();
  if (executor_.reads_checkpoints()) {
    slices_.emplace();
    params->slice_reader_cache = &*slices_;
  }
  params->inc_num_deferred_ops_function = [this] { DeferOp(); };
  params->dec_num_deferred_ops_function = [this] { EndDeferredOp(); };
}

void StepFrame::Fail(const absl::Status& status) {
  absl::Status reported = status;
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (!status_.ok()) return;
    // An error that follows from the step's cancellation must not hide the error that caused it.
    if (args_.cancellation_manager != nullptr && args_.cancellation_manager->IsCancelled() &&
        (absl::IsCancelled(status) || absl::IsAborted(status))) {
      reported = StatusGroup::MakeDerived(status);
    }
    status_ = reported;
    failed_.store(true, std::memory_order_relaxed);
  }
  if (args_.rendezvous != nullptr) args_.rendezvous->StartAbort(status);
  if (args_.cancellation_manager != nullptr) {
    args_.cancellation_manager->StartCancelWithStatus(reported);
  } else if (args_.collective_executor != nullptr) {
    args_.collective_executor->StartAbort(status);
  }
}

absl::Status StepFrame::status() const {
  std::lock_guard<std::mutex> lock(mu_);
  return status_;
}

void StepFrame::DeferOp() {
  std::lock_guard<std::mutex> lock(mu_);
  ++deferred_;
}

void StepFrame::EndDeferredOp() {
  std::function<void()> then;
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (--deferred_ == 0) then = std::move(when_none_deferred_);
  }
  if (then) then();
}

void StepFrame::WhenNoneDeferred(std::function<void()> then) {
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (deferred_ > 0) {
      when_none_deferred_ = std::move(then);
      return;
    }
  }
  then();
}

absl::Status StepFrame::DeviceStatus(absl::Status status) {
  if (!device_->AllowsSyncOnCompletion()) {
    status.Update(device_->RefreshStatus());
    // The device may report its failure here first, while other devices still wait for its values.
    if (!status.ok()) Fail(status);
  } else if (args_.sync_on_finish && status.ok()) {
    status.Update(device_->Sync());
  }
  return status;
}

absl::Status StepFrame::EndHere() {
  bool wait;
  {
    std::lock_guard<std::mutex> lock(mu_);
    wait = deferred_ > 0;
  }
  if (TF_PREDICT_FALSE(wait)) {
    absl::Notification none;
    WhenNoneDeferred([&none] { none.Notify(); });
    none.WaitForNotification();
  }
  return DeviceStatus(status());
}

void StepFrame::EndLater(std::function<void(const absl::Status&)> done) {
  WhenNoneDeferred([this, done = std::move(done)] { done(DeviceStatus(status())); });
}

}  // namespace workbench
