#include "executor/ordered_step.h"

#include <atomic>
#include <utility>

#include "executor/node_io.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace workbench {
namespace {

using tensorflow::Entry;
using tensorflow::Executor;
using tensorflow::NodeItem;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorValue;
using Call = OrderedPlan::Call;
using Kind = OrderedPlan::Kind;

// An asynchronous kernel under way, or one that blocks a thread of the pool. Its inputs lie in the
// step, which lasts longer.
struct AsyncCall {
  AsyncCall(const StepFrame& frame, const OpKernelContext::Params& step_params, const Call& call,
            uint64_t ready_since)
      : params(step_params), context(OwnParams(frame, call, ready_since), call.num_outputs) {}

  // All is set by now: the context looks at it when it is made.
  OpKernelContext::Params* OwnParams(const StepFrame& frame, const Call& call,
                                     uint64_t ready_since) {
    params.eigen_gpu_device = nullptr;
    params.track_allocations = false;
    if (frame.watch().any()) {
      watched.emplace(frame, *call.item, ready_since);
      params.track_allocations = watched->TracksAllocations();
    }
    return &params;
  }

  OpKernelContext::Params params;
  std::optional<WatchedNode> watched;
  OpKernelContext context;
  uint64_t launched = 0;  // Ticks of its launch alone.
  uint64_t ended = 0;
  int32_t position = 0;
  // Whoever comes second, the return of the launch or the kernel's callback, goes on with it.
  std::atomic<bool> second{false};
  std::shared_ptr<Workers<AsyncCall*>> workers;
};

// A node that is run by doing nothing, as those see it who watch.
void SeeNothing(WatchedNode* watched, const NodeItem& item) {
  watched->Begin();
  watched->End(watched->start(), 0);
  if (watched->stats() != nullptr && item.const_tensor != nullptr) {
    watched->stats()->SetOutput(0, item.const_tensor);
  }
  watched->Done(nullptr);
}

}  // namespace

class OrderedSteps::Step {
 public:
  Step(const ExecutorShared& shared, const OrderedPlan& plan)
      : shared_(shared),
        plan_(plan),
        entries_(plan.num_values),
        values_(plan.num_values),
        waiting_(plan.waiting.size()) {
    for (int32_t i = 0; i < plan.num_values; ++i) {
      entries_[i].alloc_attr = plan.value_attributes[i];
      values_[i].tensor = entries_[i].val.get();
    }
    for (const OrderedPlan::Constant& constant : plan.constants) {
      entries_[constant.value].state = Entry::State::HAS_CONST_TENSOR;
      entries_[constant.value].const_tensor = constant.tensor;
      values_[constant.value].tensor = const_cast<Tensor*>(constant.tensor);
    }
  }

  absl::Status Run(const Executor::Args& args, Turn* turn);
  // Deletes itself, or goes back to `owner`, before `done`.
  void RunAsync(OrderedSteps* owner, const Executor::Args& args, Executor::DoneCallback done);

 private:
  absl::Status Begin(const Executor::Args& args);
  absl::Status End(const absl::Status& status);
  void RunAll();  // Of RunAsync, to the end or to where the step waits.
  // Runs what can be run without waiting.
  void RunReady();
  template <bool kWatched>
  void RunInOrder();
  template <bool kWatched>
  bool RunCall(const Call& call);
  bool RunKernel(const Call& call);
  bool RunWatched(const Call& call);
  // Of what TensorFlow does not watch.
  bool RunNoted(const Call& call);
  // After a kernel: its error, or its outputs to those that wait.
  bool Settle(const Call& call, OpKernelContext* context);
  bool PassArgument(const Call& call);
  bool PassReturn(const Call& call);
  bool Prepare(const Call& call);
  // Moves what the kernel made to those that wait for it. `stats` may be null.
  bool Pass(const Call& call, OpKernelContext* context,
            tensorflow::NodeExecStatsInterface* stats = nullptr);
  bool PassUnusual(const Call& call, int32_t output, const TensorValue& made,
                   const int32_t* target, const int32_t* end,
                   tensorflow::NodeExecStatsInterface* stats);
  void Set(const Call& call, OpKernelContext::Params* params);
  void ClearInputs(const Call& call);
  void ClearAll();
  void TraceSettled();

  void RunByWaiting();
  void Launch(int32_t position);
  void EndAsync(AsyncCall* call);
  void Ended(int32_t position);
  void GoOn();
  void Finish();
  void SendOne();

  const ExecutorShared& shared_;
  const OrderedPlan& plan_;

  // Kept from step to step. Constants stay; other values are there between producer and consumer.
  std::vector<Entry> entries_;
  std::vector<TensorValue> values_;
  std::vector<int32_t> waiting_;
  OpKernelContext::Params params_;

  std::optional<StepFrame> frame_;
  uint64_t ready_since_ = 0;  // Ticks: the end of the call before.
  size_t cursor_ = 0;         // Of RunByWaiting: positions before it ran or wait.
  std::vector<int32_t> ready_;
  int under_way_ = 0;
  std::shared_ptr<Workers<AsyncCall*>> workers_;
  std::vector<AsyncCall*> taken_;

  // Of RunAsync alone.
  OrderedSteps* owner_ = nullptr;
  std::optional<Executor::Args> own_args_;
  Executor::DoneCallback done_;
};

absl::Status OrderedSteps::Step::Begin(const Executor::Args& args) {
  frame_.emplace(shared_, args);
  TF_RETURN_IF_ERROR(frame_->Begin());
  frame_->Fill(&params_);
  params_.is_input_dead = false;
  params_.track_allocations = false;  // The step before may have left it on.
  params_.frame_iter = tensorflow::FrameAndIter(0, 0);
  ready_since_ = frame_->watch().any() ? Ticks() : 0;
  if (plan_.has_async) {
    waiting_ = plan_.waiting;
    cursor_ = 0;
    ready_.clear();
    under_way_ = 0;
  }
  if (TF_PREDICT_FALSE(frame_->watch().any())) TraceSettled();
  return absl::OkStatus();
}

absl::Status OrderedSteps::Step::End(const absl::Status& status) {
  if (TF_PREDICT_FALSE(!status.ok())) ClearAll();
  frame_.reset();
  workers_.reset();
  return status;
}

void OrderedSteps::Step::TraceSettled() {
  for (int32_t id : plan_.settled) {
    const NodeItem& item = shared_.state().graph_view().node_ref(id);
    if (!frame_->watch().by_tensorflow()) {
      frame_->Note(item, ready_since_, ready_since_, ready_since_, 0);
      continue;
    }
    WatchedNode watched(*frame_, item, ready_since_);
    SeeNothing(&watched, item);
  }
}

absl::Status OrderedSteps::Step::Run(const Executor::Args& args, Turn* turn) {
  absl::Status begun = Begin(args);
  if (!begun.ok()) return End(begun);
  RunReady();
  while (under_way_ > 0) {
    taken_.clear();
    turn->Pause();
    workers_->TakeHome(0, 1, &taken_);
    turn->Resume();
    for (AsyncCall* call : taken_) EndAsync(call);
    RunByWaiting();
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
  // Who did not ask for its own thread may have to stop the step, or to start another one that this
  // one waits for.
  if (args.run_all_kernels_inline) {
    RunAll();
  } else {
    args.runner([this] { RunAll(); });
  }
}

void OrderedSteps::Step::RunAll() {
  RunReady();
  if (under_way_ == 0) {
    Finish();
  } else {
    GoOn();
  }
}

void OrderedSteps::Step::RunReady() {
  if (plan_.has_async) {
    const bool home = !own_args_.has_value();
    workers_ = std::make_shared<Workers<AsyncCall*>>(1, home);
    if (!home) workers_->Join();
    RunByWaiting();
  } else if (TF_PREDICT_TRUE(!frame_->watch().any())) {
    RunInOrder<false>();
  } else {
    RunInOrder<true>();
  }
}

template <bool kWatched>
void OrderedSteps::Step::RunInOrder() {
  for (const Call& call : plan_.calls) {
    if (TF_PREDICT_FALSE(!RunCall<kWatched>(call))) return;
  }
}

template <bool kWatched>
bool OrderedSteps::Step::RunCall(const Call& call) {
  if constexpr (kWatched) {
    return RunWatched(call);
  } else {
    switch (call.kind) {
      case Kind::kArgument:
        return PassArgument(call);
      case Kind::kReturn:
        return PassReturn(call);
      case Kind::kNothing:
        return true;
      default:
        return RunKernel(call);
    }
  }
}

void OrderedSteps::Step::Set(const Call& call, OpKernelContext::Params* params) {
  params->op_kernel = call.kernel;
  params->inputs = absl::MakeConstSpan(values_.data() + call.first_input, call.num_inputs);
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

bool OrderedSteps::Step::Settle(const Call& call, OpKernelContext* context) {
  if (TF_PREDICT_FALSE(!context->status().ok())) {
    frame_->Fail(KernelError(*call.item, context));
    return false;
  }
  ClearInputs(call);
  return Pass(call, context);
}

bool OrderedSteps::Step::RunWatched(const Call& call) {
  if (TF_PREDICT_TRUE(!frame_->watch().by_tensorflow())) return RunNoted(call);
  WatchedNode watched(*frame_, *call.item, ready_since_);
  if (call.kind == Kind::kNothing) {
    SeeNothing(&watched, *call.item);
    return true;
  }
  // Arguments and return values too run as kernels: RunMetadata and the profiler describe those.
  Set(call, &params_);
  params_.track_allocations = watched.TracksAllocations();
  if (call.reads_variables && !Prepare(call)) {
    watched.Done(nullptr);
    return false;
  }
  OpKernelContext context(&params_, call.num_outputs);
  watched.BeginRegion(context);
  watched.Begin();
  frame_->device()->Compute(call.kernel, &context);
  ready_since_ = Ticks();
  watched.End(ready_since_, ready_since_ - watched.start());
  watched.EndRegion();
  bool passed;
  if (!context.status().ok()) {
    frame_->Fail(KernelError(*call.item, &context));
    passed = false;
  } else {
    ClearInputs(call);
    passed = Pass(call, &context, watched.stats());
  }
  watched.Done(&context);
  return passed;
}

bool OrderedSteps::Step::RunNoted(const Call& call) {
  const uint64_t ready_since = ready_since_;
  uint64_t start = ready_since;
  bool passed = true;
  switch (call.kind) {
    case Kind::kNothing:
      break;
    case Kind::kArgument:
    case Kind::kReturn:
      start = Ticks();
      passed = call.kind == Kind::kArgument ? PassArgument(call) : PassReturn(call);
      ready_since_ = Ticks();
      break;
    default:
      Set(call, &params_);
      if (call.reads_variables && !Prepare(call)) return false;
      OpKernelContext context(&params_, call.num_outputs);
      start = Ticks();
      frame_->device()->Compute(call.kernel, &context);
      ready_since_ = Ticks();
      passed = Settle(call, &context);
  }
  frame_->Note(*call.item, ready_since, start, ready_since_, ready_since_ - start);
  return passed;
}

bool OrderedSteps::Step::PassArgument(const Call& call) {
  tensorflow::CallFrameInterface* call_frame = params_.call_frame;
  if (TF_PREDICT_FALSE(call_frame == nullptr || size_t(call.index) >= call_frame->num_args())) {
    return RunKernel(call);
  }
  const int32_t* begins = plan_.target_begins.data() + call.target_begin;
  const int32_t* target = plan_.targets.data() + begins[0];
  const int32_t* end = plan_.targets.data() + begins[1];
  if (target == end) return true;
  if (call_frame->CanConsumeArg(call.index)) {
    Tensor value;
    call_frame->ConsumeArg(call.index, &value);
    if (TF_PREDICT_FALSE(value.dtype() != call.item->output_type(0))) {
      frame_->Fail(tensorflow::AttachDef(
          absl::InvalidArgumentError(absl::StrCat(
              "Type mismatch: actual ", tensorflow::DataTypeString(value.dtype()), " vs. expect ",
              tensorflow::DataTypeString(call.item->output_type(0)))),
          call.kernel->def()));
      return false;
    }
    for (; target != end - 1; ++target) {
      entries_[*target].val.Init(value);
      entries_[*target].state = Entry::State::HAS_VALUE;
    }
    entries_[*target].val.Init(std::move(value));
    entries_[*target].state = Entry::State::HAS_VALUE;
    return true;
  }
  const Tensor* value;
  if (TF_PREDICT_FALSE(!call_frame->GetArg(call.index, &value).ok() ||
                       value->dtype() != call.item->output_type(0))) {
    return RunKernel(call);
  }
  for (; target != end; ++target) {
    entries_[*target].val.Init(*value);
    entries_[*target].state = Entry::State::HAS_VALUE;
  }
  return true;
}

bool OrderedSteps::Step::PassReturn(const Call& call) {
  if (TF_PREDICT_FALSE(call.reads_variables)) return RunKernel(call);
  const Tensor& value = *values_[call.first_input].tensor;
  if (TF_PREDICT_FALSE(params_.call_frame == nullptr ||
                       value.dtype() != call.item->input_type(0))) {
    return RunKernel(call);
  }
  absl::Status set = params_.call_frame->SetRetval(call.index, value);
  if (TF_PREDICT_FALSE(!set.ok())) {
    frame_->Fail(tensorflow::AttachDef(set, call.kernel->def()));
    return false;
  }
  ClearInputs(call);
  return true;
}

bool OrderedSteps::Step::Prepare(const Call& call) {
  absl::InlinedVector<tensorflow::AllocatorAttributes, 8> attributes(call.num_inputs);
  bool dead;
  absl::Status prepared =
      PrepareInputs(*call.item, entries_.data() + call.first_input,
                    values_.data() + call.first_input, attributes.data(), &dead);
  if (TF_PREDICT_TRUE(prepared.ok())) return true;
  frame_->Fail(prepared);
  return false;
}

bool OrderedSteps::Step::Pass(const Call& call, OpKernelContext* context,
                              tensorflow::NodeExecStatsInterface* stats) {
  const int32_t* begins = plan_.target_begins.data() + call.target_begin;
  bool passed = true;
  for (int32_t output = 0; output < call.num_outputs; ++output) {
    const TensorValue made = context->release_output(output);
    const int32_t* target = plan_.targets.data() + begins[output];
    const int32_t* end = plan_.targets.data() + begins[output + 1];
    if (TF_PREDICT_FALSE(made.tensor == nullptr || made.is_ref() ||
                         made.tensor->dtype() != call.item->output_type(output))) {
      passed &= PassUnusual(call, output, made, target, end, stats);
      continue;
    }
    if (TF_PREDICT_FALSE(stats != nullptr) && made.tensor->IsInitialized()) {
      stats->SetOutput(output, made.tensor);
    }
    if (target != end) {
      // The last one takes it over: a kernel may write to a value that nobody else has.
      for (; target != end - 1; ++target) {
        entries_[*target].val.Init(*made.tensor);
        entries_[*target].state = Entry::State::HAS_VALUE;
      }
      entries_[*target].val.Init(std::move(*made.tensor));
      entries_[*target].state = Entry::State::HAS_VALUE;
    }
    delete made.tensor;
  }
  return passed;
}

bool OrderedSteps::Step::PassUnusual(const Call& call, int32_t output, const TensorValue& made,
                                     const int32_t* target, const int32_t* end,
                                     tensorflow::NodeExecStatsInterface* stats) {
  const NodeItem& item = *call.item;
  if (made.tensor == nullptr) {
    if (item.is_recv_or_switch || (item.outputs_required && !item.outputs_required[output])) {
      for (; target != end; ++target) {
        entries_[*target].val.Init();
        entries_[*target].state = Entry::State::HAS_VALUE;
      }
      return true;
    }
    frame_->Fail(absl::InternalError(absl::StrCat(
        "Missing ", output, "-th output from ",
        tensorflow::FormatNodeDefForError(call.kernel->def()))));
    return false;
  }
  const tensorflow::DataType type = made.dtype_safe();
  if (type != item.output_type(output)) {
    frame_->Fail(absl::InternalError(
        absl::StrCat("Output ", output, " of type ", tensorflow::DataTypeString(type),
                     " does not match declared output type ",
                     tensorflow::DataTypeString(item.output_type(output)), " for node ",
                     tensorflow::FormatNodeDefForError(call.kernel->def()))));
    if (!made.is_ref()) delete made.tensor;
    return false;
  }
  if (stats != nullptr && made.tensor->IsInitialized()) stats->SetOutput(output, made.tensor);
  for (; target != end; ++target) {
    entries_[*target].ref_tensor.tensor = made.tensor;
    entries_[*target].ref_tensor.mu = made.mutex_if_ref;
    entries_[*target].state = Entry::State::HAS_REF_TENSOR;
  }
  return true;
}

void OrderedSteps::Step::ClearInputs(const Call& call) {
  Entry* entry = entries_.data() + call.first_input;
  for (const Entry* end = entry + call.num_inputs; entry != end; ++entry) {
    if (entry->state != Entry::State::HAS_CONST_TENSOR) entry->ClearVal();
  }
}

void OrderedSteps::Step::ClearAll() {
  for (Entry& entry : entries_) {
    if (entry.state != Entry::State::HAS_CONST_TENSOR) entry.ClearVal();
  }
}

void OrderedSteps::Step::RunByWaiting() {
  const bool watched = frame_->watch().any();
  while (!frame_->failed()) {
    int32_t position;
    if (!ready_.empty()) {
      position = ready_.back();
      ready_.pop_back();
    } else if (cursor_ < plan_.calls.size()) {
      position = cursor_++;
      if (waiting_[position] > 0) continue;  // Its last producer will find it behind the cursor.
    } else {
      return;
    }
    const Call& call = plan_.calls[position];
    if (call.kind == Kind::kAsync) {
      Launch(position);
    } else if (watched ? RunCall<true>(call) : RunCall<false>(call)) {
      Ended(position);
    }
  }
}

void OrderedSteps::Step::Ended(int32_t position) {
  for (const int32_t* next = plan_.behind.begin(position); next != plan_.behind.end(position);
       ++next) {
    if (--waiting_[*next] == 0 && size_t(*next) < cursor_) ready_.push_back(*next);
  }
}

void OrderedSteps::Step::Launch(int32_t position) {
  const Call& call = plan_.calls[position];
  Set(call, &params_);
  if (call.reads_variables && !Prepare(call)) return;
  auto* async = new AsyncCall(*frame_, params_, call, ready_since_);
  async->position = position;
  async->workers = workers_;
  if (frame_->watch().any()) {
    async->watched->BeginRegion(async->context);
    async->watched->Begin();
  }
  ++under_way_;
  auto done = [this, async] {
    if (async->watched) async->ended = Ticks();
    if (!async->second.exchange(true)) return;
    // Once it is handed over the step may end and go, unless this thread has to send somebody.
    const std::shared_ptr<Workers<AsyncCall*>> workers = std::move(async->workers);
    const Workers<AsyncCall*>::Ready ready{0, 0, async};
    if (workers->Add(&ready, &ready + 1, /*idle=*/false) > 0) SendOne();
  };
  if (call.item->kernel_is_async) {
    frame_->device()->ComputeAsync(call.kernel->AsAsync(), &async->context, std::move(done));
  } else {
    frame_->args().runner(
        [async, kernel = call.kernel, device = frame_->device(), done = std::move(done)] {
          device->Compute(kernel, &async->context);
          done();
        });
  }
  if (frame_->watch().any()) {
    async->watched->EndRegion();
    ready_since_ = Ticks();
    async->launched = ready_since_ - async->watched->start();
  }
  if (async->second.exchange(true)) EndAsync(async);
}

void OrderedSteps::Step::EndAsync(AsyncCall* async) {
  const Call& call = plan_.calls[async->position];
  tensorflow::NodeExecStatsInterface* stats = nullptr;
  if (async->watched) {
    const bool waits = shared_.Waits(call.item->node_id);
    async->watched->End(async->ended,
                        waits ? async->launched : async->ended - async->watched->start());
    stats = async->watched->stats();
    ready_since_ = async->ended;
  }
  if (!async->context.status().ok()) {
    frame_->Fail(KernelError(*call.item, &async->context));
  } else {
    ClearInputs(call);
    if (Pass(call, &async->context, stats)) Ended(async->position);
  }
  if (async->watched) async->watched->Done(&async->context);
  --under_way_;
  delete async;
}

void OrderedSteps::Step::SendOne() {
  own_args_->runner([this] {
    if (workers_->Enter()) GoOn();
  });
}

void OrderedSteps::Step::GoOn() {
  // Another thread may end the step as soon as this one has left.
  const std::shared_ptr<Workers<AsyncCall*>> workers = workers_;
  while (under_way_ > 0) {
    taken_.clear();
    if (workers->Take(0, 1, &taken_) != Workers<AsyncCall*>::Took::kItems) return;
    EndAsync(taken_.front());
    RunByWaiting();
  }
  Finish();
}

void OrderedSteps::Step::Finish() {
  frame_->EndLater([this](const absl::Status& status) {
    const Executor::DoneCallback done = std::move(done_);
    OrderedSteps* owner = owner_;
    const absl::Status ended = End(status);
    own_args_.reset();
    owner->Release(std::unique_ptr<Step>(this));
    done(ended);
  });
}

OrderedSteps::OrderedSteps(const ExecutorShared& shared, const tensorflow::Graph& graph)
    : shared_(shared), plan_(shared, graph) {}

OrderedSteps::~OrderedSteps() = default;

absl::Status OrderedSteps::Run(const Executor::Args& args, Turn* turn) {
  std::unique_ptr<Step> step = Acquire();
  absl::Status status = step->Run(args, turn);
  Release(std::move(step));
  return status;
}

void OrderedSteps::RunAsync(const Executor::Args& args, Executor::DoneCallback done) {
  Acquire().release()->RunAsync(this, args, std::move(done));
}

std::unique_ptr<OrderedSteps::Step> OrderedSteps::Acquire() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (!idle_.empty()) {
      std::unique_ptr<Step> step = std::move(idle_.back());
      idle_.pop_back();
      return step;
    }
  }
  return std::make_unique<Step>(shared_, plan_);
}

void OrderedSteps::Release(std::unique_ptr<Step> step) {
  std::lock_guard<std::mutex> lock(mu_);
  idle_.push_back(std::move(step));
}

}  // namespace workbench
