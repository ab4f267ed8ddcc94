#include "executor/policies/ordered/ordered_step.h"

#include <utility>

#include "executor/policies/ordered/ordered_values.h"
#include "executor/step/async_kernel.h"
#include "executor/step/node_io.h"
#include "threading/float_state.h"

namespace workbench {
namespace {

using tensorflow::Executor;
using tensorflow::NodeItem;
using tensorflow::OpKernelContext;
using Call = OrderedPlan::Call;
using Kind = OrderedPlan::Kind;

}  // namespace

class OrderedSteps::Step {
 public:
  Step(const ExecutorState& executor, const OrderedPlan& plan)
      : executor_(executor), plan_(plan), values_(plan), unmet_(plan.in_degrees.size()) {}

  absl::Status Run(const Executor::Args& args, Admission* admission);
  // Goes back to the pool of `owner` before `done`.
  void RunAsync(OrderedSteps* owner, const Executor::Args& args, Executor::DoneCallback done);

 private:
  absl::Status Begin(const Executor::Args& args);
  absl::Status End(const absl::Status& status);
  void RunAll();  // Of RunAsync: until the step ends or waits.
  // Runs the calls that need no waiting.
  void RunReady();
  template <bool kObserved>
  void RunInOrder();
  template <bool kObserved>
  bool RunCall(const Call& call);
  bool RunKernel(const Call& call);
  bool RunObserved(const Call& call);
  // For observers that need only the times.
  bool RunTraced(const Call& call);
  // Without their kernels, if the values need no conversion.
  bool RunArgument(const Call& call);
  bool RunReturn(const Call& call);
  // After a kernel: fails the step with its error, or passes its outputs on. `stats` may be null.
  bool Settle(const Call& call, OpKernelContext* context,
              tensorflow::NodeExecStatsInterface* stats = nullptr);
  bool Prepare(const Call& call) { return Check(values_.Prepare(call)); }
  bool Check(const absl::Status& status) {
    if (TF_PREDICT_TRUE(status.ok())) return true;
    frame_->Fail(status);
    return false;
  }
  void Set(const Call& call, OpKernelContext::Params* params);
  void TraceSettled();

  struct AsyncCall;

  void RunByReadiness();
  // Whether RunByReadiness, which has been through the whole plan, has a call to run.
  bool HasReady() const { return !frame_->failed() && !ready_.empty(); }
  void Launch(int32_t position);
  void EndAsync(AsyncCall* async);
  void Ended(int32_t position);
  void Continue();
  void Finish();
  void SendWorker();

  const ExecutorState& executor_;
  const OrderedPlan& plan_;

  // Used again by later steps.
  OrderedValues values_;
  std::vector<int32_t> unmet_;  // By position: predecessors that have not ended.
  OpKernelContext::Params params_;

  std::optional<StepFrame> frame_;
  uint64_t ready_since_ = 0;  // Ticks: the end of the call before.
  size_t cursor_ = 0;           // Of RunByReadiness: calls before it ran, or wait for others.
  std::vector<int32_t> ready_;  // Positions before the cursor.
  int running_ = 0;             // Asynchronous kernels.
  std::shared_ptr<Workers<AsyncCall*>> workers_;
  std::vector<AsyncCall*> taken_;

  // Of RunAsync alone.
  OrderedSteps* owner_ = nullptr;
  std::optional<Executor::Args> own_args_;
  Executor::DoneCallback done_;
};

// The call's inputs lie in the step, which outlives it.
struct OrderedSteps::Step::AsyncCall : AsyncKernel {
  AsyncCall(Step* step, int32_t position)
      : AsyncKernel(*step->frame_, *step->plan_.calls[position].item, step->params_,
                    step->ready_since_),
        step(step),
        position(position),
        workers(step->workers_) {}

  void Ended(bool here) override {
    if (here) {
      step->EndAsync(this);
      return;
    }
    // Once this is in the queue the step may end and be gone, unless this thread has to send a
    // worker.
    const std::shared_ptr<Workers<AsyncCall*>> queue = std::move(workers);
    Step* const owner = step;
    const Workers<AsyncCall*>::Ready ready{0, 0, this};
    if (queue->Add(&ready, &ready + 1, queue->kNotAWorker) > 0) owner->SendWorker();
  }

  Step* const step;
  const int32_t position;
  std::shared_ptr<Workers<AsyncCall*>> workers;
};

absl::Status OrderedSteps::Step::Begin(const Executor::Args& args) {
  frame_.emplace(executor_, args);
  TF_RETURN_IF_ERROR(frame_->Begin());
  frame_->Fill(&params_);
  params_.is_input_dead = false;
  params_.track_allocations = false;  // An earlier step may have left it on.
  params_.frame_iter = tensorflow::FrameAndIter(0, 0);
  ready_since_ = frame_->observers().any() ? Ticks() : 0;
  if (plan_.has_async) {
    unmet_ = plan_.in_degrees;
    cursor_ = 0;
    ready_.clear();
    running_ = 0;
  }
  if (TF_PREDICT_FALSE(frame_->observers().any())) TraceSettled();
  return absl::OkStatus();
}

absl::Status OrderedSteps::Step::End(const absl::Status& status) {
  if (TF_PREDICT_FALSE(!status.ok())) values_.ClearAll();
  frame_.reset();
  workers_.reset();
  return status;
}

void OrderedSteps::Step::TraceSettled() {
  for (int32_t id : plan_.settled) {
    const NodeItem& item = executor_.immutable_state().graph_view().node_ref(id);
    if (!frame_->observers().by_tensorflow()) {
      frame_->Note(item, ready_since_, ready_since_, ready_since_, 0);
      continue;
    }
    ObservedNode(*frame_, item, ready_since_).RunNothing();
  }
}

absl::Status OrderedSteps::Step::Run(const Executor::Args& args, Admission* admission) {
  absl::Status begun = Begin(args);
  if (!begun.ok()) return End(begun);
  RunReady();
  while (running_ > 0) {
    taken_.clear();
    workers_->TakeAsCaller(0, 1, &taken_, admission);
    EndAsync(taken_.front());
    if (!HasReady()) continue;
    admission->Resume();
    RunByReadiness();
  }
  return End(frame_->EndHere());
}

void OrderedSteps::Step::RunAsync(OrderedSteps* owner, const Executor::Args& args,
                                  Executor::DoneCallback done) {
  owner_ = owner;
  own_args_.emplace(args);
  done_ = std::move(done);
  absl::Status begun = Begin(*own_args_);
  if (!begun.ok()) {
    frame_->Fail(begun);
    Finish();
    return;
  }
  // A caller that did not ask for its own thread may have to cancel the step, or to start another
  // step that this one waits for.
  if (args.run_all_kernels_inline) {
    RunAll();
  } else {
    args.runner([this] { RunAll(); });
  }
}

void OrderedSteps::Step::RunAll() {
  RunReady();
  if (running_ == 0) {
    Finish();
  } else {
    Continue();
  }
}

void OrderedSteps::Step::RunReady() {
  const TensorFlowFloatState float_state;
  if (plan_.has_async) {
    const bool has_caller = !own_args_.has_value();
    workers_ = std::make_shared<Workers<AsyncCall*>>(1, has_caller);
    if (!has_caller) workers_->Join();
    RunByReadiness();
  } else if (TF_PREDICT_TRUE(!frame_->observers().any())) {
    RunInOrder<false>();
  } else {
    RunInOrder<true>();
  }
}

template <bool kObserved>
void OrderedSteps::Step::RunInOrder() {
  for (const Call& call : plan_.calls) {
    if (TF_PREDICT_FALSE(!RunCall<kObserved>(call))) return;
  }
}

template <bool kObserved>
bool OrderedSteps::Step::RunCall(const Call& call) {
  if constexpr (kObserved) {
    return RunObserved(call);
  } else {
    switch (call.kind) {
      case Kind::kArgument:
        return RunArgument(call);
      case Kind::kReturn:
        return RunReturn(call);
      case Kind::kNothing:
        return true;
      default:
        return RunKernel(call);
    }
  }
}

void OrderedSteps::Step::Set(const Call& call, OpKernelContext::Params* params) {
  params->op_kernel = call.kernel;
  params->inputs = values_.InputsOf(call);
  params->input_alloc_attrs =
      absl::MakeConstSpan(plan_.value_attributes.data() + call.first_input, call.num_inputs);
  params->output_attr_array = call.item->output_attrs();
  params->forward_from_array = call.item->forward_from();
  params->outputs_required_array = call.item->outputs_required.get();
}

bool OrderedSteps::Step::RunKernel(const Call& call) {
  Set(call, &params_);
  if (TF_PREDICT_FALSE(call.reads_variables) && !Prepare(call)) return false;
  OpKernelContext context(&params_, call.num_outputs);
  frame_->device()->Compute(call.kernel, &context);
  return Settle(call, &context);
}

bool OrderedSteps::Step::Settle(const Call& call, OpKernelContext* context,
                                tensorflow::NodeExecStatsInterface* stats) {
  if (TF_PREDICT_FALSE(!context->status().ok())) {
    frame_->Fail(KernelError(*call.item, context));
    return false;
  }
  values_.ClearInputs(call);
  return Check(values_.Pass(call, context, stats));
}

bool OrderedSteps::Step::RunArgument(const Call& call) {
  absl::Status status;
  return values_.PassArgument(call, params_.call_frame, &status) ? Check(status) : RunKernel(call);
}

bool OrderedSteps::Step::RunReturn(const Call& call) {
  absl::Status status;
  return values_.PassReturn(call, params_.call_frame, &status) ? Check(status) : RunKernel(call);
}

bool OrderedSteps::Step::RunObserved(const Call& call) {
  if (TF_PREDICT_TRUE(!frame_->observers().by_tensorflow())) return RunTraced(call);
  ObservedNode observed(*frame_, *call.item, ready_since_);
  if (call.kind == Kind::kNothing) {
    observed.RunNothing();
    return true;
  }
  // Arguments and return values run as kernels, too: RunMetadata and the profiler show kernels.
  Set(call, &params_);
  params_.track_allocations = observed.TracksAllocations();
  if (call.reads_variables && !Prepare(call)) {
    observed.Done(nullptr);
    return false;
  }
  OpKernelContext context(&params_, call.num_outputs);
  observed.BeginRegion(context);
  observed.Begin();
  frame_->device()->Compute(call.kernel, &context);
  ready_since_ = Ticks();
  observed.End(ready_since_, ready_since_ - observed.start(), frame_->TracedBytes(&context));
  observed.EndRegion();
  const bool passed = Settle(call, &context, observed.stats());
  observed.Done(&context);
  return passed;
}

bool OrderedSteps::Step::RunTraced(const Call& call) {
  const uint64_t ready_since = ready_since_;
  uint64_t start = ready_since;
  OutputBytes bytes;
  bool passed = true;
  switch (call.kind) {
    case Kind::kNothing:
      break;
    case Kind::kArgument:
    case Kind::kReturn:
      start = Ticks();
      passed = call.kind == Kind::kArgument ? RunArgument(call) : RunReturn(call);
      ready_since_ = Ticks();
      break;
    default:
      Set(call, &params_);
      if (call.reads_variables && !Prepare(call)) return false;
      OpKernelContext context(&params_, call.num_outputs);
      start = Ticks();
      frame_->device()->Compute(call.kernel, &context);
      ready_since_ = Ticks();
      bytes = frame_->TracedBytes(&context);
      passed = Settle(call, &context);
  }
  frame_->Note(*call.item, ready_since, start, ready_since_, ready_since_ - start, bytes);
  return passed;
}

void OrderedSteps::Step::RunByReadiness() {
  const TensorFlowFloatState float_state;
  const bool observed = frame_->observers().any();
  while (!frame_->failed()) {
    int32_t position;
    if (!ready_.empty()) {
      position = ready_.back();
      ready_.pop_back();
    } else if (cursor_ < plan_.calls.size()) {
      position = cursor_++;
      if (unmet_[position] > 0) continue;  // Its last predecessor adds it to ready_.
    } else {
      return;
    }
    const Call& call = plan_.calls[position];
    if (call.kind == Kind::kAsync) {
      Launch(position);
    } else if (observed ? RunCall<true>(call) : RunCall<false>(call)) {
      Ended(position);
    }
  }
}

void OrderedSteps::Step::Ended(int32_t position) {
  const int32_t* const end = plan_.successors.end(position);
  for (const int32_t* next = plan_.successors.begin(position); next != end; ++next) {
    if (--unmet_[*next] == 0 && size_t(*next) < cursor_) ready_.push_back(*next);
  }
}

void OrderedSteps::Step::Launch(int32_t position) {
  const Call& call = plan_.calls[position];
  Set(call, &params_);
  if (call.reads_variables && !Prepare(call)) return;
  ++running_;
  (new AsyncCall(this, position))->Start();
  if (frame_->observers().any()) ready_since_ = Ticks();
}

void OrderedSteps::Step::EndAsync(AsyncCall* async) {
  tensorflow::NodeExecStatsInterface* stats = async->EndObservation();
  ready_since_ = async->ended();
  if (Settle(plan_.calls[async->position], async->context(), stats)) Ended(async->position);
  async->OutputsObserved();
  --running_;
  delete async;
}

void OrderedSteps::Step::SendWorker() {
  own_args_->runner([this] {
    if (workers_->Enter()) Continue();
  });
}

void OrderedSteps::Step::Continue() {
  // Another thread may end the step as soon as this one has left.
  const std::shared_ptr<Workers<AsyncCall*>> workers = workers_;
  while (running_ > 0) {
    taken_.clear();
    if (workers->Take(0, 1, &taken_) != Workers<AsyncCall*>::Took::kItems) return;
    EndAsync(taken_.front());
    RunByReadiness();
  }
  Finish();
}

void OrderedSteps::Step::Finish() {
  frame_->EndLater([this](const absl::Status& status) {
    const Executor::DoneCallback done = std::move(done_);
    OrderedSteps* owner = owner_;
    const absl::Status ended = End(status);
    own_args_.reset();
    owner->idle_steps_.Return(std::unique_ptr<Step>(this));
    done(ended);
  });
}

OrderedSteps::OrderedSteps(const ExecutorState& executor, const tensorflow::Graph& graph)
    : executor_(executor), plan_(executor, graph) {}

OrderedSteps::~OrderedSteps() = default;

absl::Status OrderedSteps::Run(const Executor::Args& args, Admission* admission) {
  std::unique_ptr<Step> step = Acquire();
  absl::Status status = step->Run(args, admission);
  idle_steps_.Return(std::move(step));
  return status;
}

void OrderedSteps::RunAsync(const Executor::Args& args, Executor::DoneCallback done) {
  Acquire().release()->RunAsync(this, args, std::move(done));
}

std::unique_ptr<OrderedSteps::Step> OrderedSteps::Acquire() {
  std::unique_ptr<Step> step = idle_steps_.Take();
  return step != nullptr ? std::move(step) : std::make_unique<Step>(executor_, plan_);
}

}  // namespace workbench
