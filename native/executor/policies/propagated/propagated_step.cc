#include "executor/policies/propagated/propagated_step.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "executor/step/async_kernel.h"
#include "executor/step/node_io.h"
#include "executor/step/step_frame.h"
#include "executor/scheduling/workers.h"
#include "tensorflow/core/common_runtime/propagator_state.h"
#include "tensorflow/core/common_runtime/simple_propagator_state.h"
#include "tensorflow/core/platform/cpu_info.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace workbench {
namespace {

using tensorflow::Entry;
using tensorflow::EntryVector;
using tensorflow::Executor;
using tensorflow::NodeItem;
using tensorflow::OpKernelContext;
using tensorflow::TensorValue;

// A thread that sleeps comes late to what is done in fewer batches.
constexpr int64_t kWorthHelpBatches = 4;

// About what it costs to wake a thread that sleeps.
constexpr std::chrono::microseconds kSpin{50};

int Threads(const Executor::Args& args) {
  const int wanted =
      args.session_config == nullptr ? 0 : args.session_config->inter_op_parallelism_threads();
  return wanted > 0 ? wanted : tensorflow::port::MaxParallelism();
}

template <class Propagator>
class Step {
 public:
  Step(const ExecutorShared& shared, const Executor::Args& args, bool home);

  absl::Status Run(Turn* turn);
  static void RunAsync(const ExecutorShared& shared, const Executor::Args& args,
                       Executor::DoneCallback done);

 private:
  using TaggedNode = typename Propagator::TaggedNode;
  using TaggedNodeSeq = typename Propagator::TaggedNodeSeq;

  struct Item {
    TaggedNode node;
    uint64_t scheduled;
  };
  using Workers = workbench::Workers<Item>;
  using Common = absl::InlinedVector<typename Workers::Ready, 16>;

  // What one thread has taken and not yet run, and what it needs for every node.
  struct Local {
    explicit Local(const OpKernelContext::Params& shared_params) : params(shared_params) {
      params.eigen_gpu_device = nullptr;
      items.reserve(16);  // More than are mostly ready at one time.
    }
    bool empty() const { return next == items.size(); }
    size_t pending() const { return items.size() - next; }
    void Push(const Item& item, int64_t cost) {
      if (empty()) {
        items.clear();
        next = 0;
        this->cost = 0;
      } else if (next >= kForget && next >= pending()) {
        items.erase(items.begin(), items.begin() + next);
        next = 0;
      }
      items.push_back(item);
      this->cost += cost;
    }
    const Item& Pop(int64_t cost) {
      this->cost -= cost;
      return items[next++];
    }
    // Room for a node's values. It never gets less: to make and destroy it for every node would cost
    // as much as all else that is done for a small one.
    void MakeRoom(const NodeItem& node) {
      if (TF_PREDICT_FALSE(inputs.size() < size_t(node.num_inputs))) {
        inputs.resize(node.num_inputs);
        input_attributes.resize(node.num_inputs);
      }
      if (TF_PREDICT_FALSE(outputs.size() < size_t(node.num_outputs))) {
        outputs.resize(node.num_outputs);
      }
    }

    static constexpr size_t kForget = 1024;
    std::vector<Item> items;
    size_t next = 0;  // Those before it have run.
    int64_t cost = 0;  // Of those that are pending.
    int32_t batch = 0;
    OpKernelContext::Params params;
    absl::InlinedVector<TensorValue, 8> inputs;
    absl::InlinedVector<tensorflow::AllocatorAttributes, 8> input_attributes;
    EntryVector outputs;  // Without values between two nodes.
    TaggedNodeSeq ready;
    uint32_t turn = 0;
    uint64_t ended = 0;  // Ticks: the kernel that ran last; 0 where nobody watches.
  };

  struct AsyncNode;

  bool shares() const { return workers_ != nullptr; }
  // When nodes get ready: the end of the kernel before, if there was one.
  uint64_t Now(const Local* local) const {
    if (!watched_) return 0;
    return local != nullptr && local->ended != 0 ? local->ended : Ticks();
  }
  // What a node leaves is as new for the next one.
  static void Clear(const NodeItem& node, EntryVector* outputs) {
    for (int i = 0; i < node.num_outputs; ++i) {
      Entry& out = (*outputs)[i];
      out.ClearVal();
      out.alloc_attr = tensorflow::AllocatorAttributes();
    }
  }
  int64_t CostOf(const TaggedNode& node) const {
    return learned_ == nullptr || node.get_is_dead()
               ? 0
               : learned_->average_ns[node.get_node_item().node_id];
  }
  int64_t PriorityOf(const TaggedNode& node) const {
    return learned_ == nullptr ? 0 : learned_->to_sink_ns[node.get_node_item().node_id];
  }

  absl::Status Begin(TaggedNodeSeq* roots);
  // What was learned if this step goes by it, else null.
  std::shared_ptr<const CostModel::Learned> Order(std::shared_ptr<const CostModel::Learned> learned);
  // The step has ended.
  void TellTrial(const absl::Status& status) const {
    if (tried_ != nullptr && status.ok()) tried_->trial.Took(tried_order_, Ticks() - began_);
  }
  // True: the step has come to its end.
  bool RunNode(const Item& item, Local* local);
  absl::Status RunKernel(const Item& item, Local* local, Entry* inputs, bool* launched);
  absl::Status Compute(const Item& item, Local* local);
  void EndAsync(AsyncNode* async);
  bool EndNode(const TaggedNode& node, const absl::Status& status, Entry* inputs,
               EntryVector* outputs, TaggedNodeSeq* ready, Local* local);

  // As stock TensorFlow; `local` is null on a thread that is not the step's.
  void ScheduleNormally(const TaggedNodeSeq& ready, Local* local);
  void Dispatch(const TaggedNode& node, uint64_t scheduled);
  // By the workers' common queue, as far as the thread does not do it itself.
  void ScheduleShared(TaggedNodeSeq* ready, Local* local);
  void SortByPriority(TaggedNodeSeq* ready) const {
    if (learned_ == nullptr || ready->size() < 2) return;
    std::sort(ready->begin(), ready->end(), [this](const TaggedNode& a, const TaggedNode& b) {
      return PriorityOf(a) > PriorityOf(b);
    });
  }
  // The propagator goes by the addresses of edges where a node has many. The latest nodes first, as
  // in stock TensorFlow.
  static void SortById(TaggedNodeSeq* ready) {
    std::stable_sort(ready->begin(), ready->end(), [](const TaggedNode& a, const TaggedNode& b) {
      return a.get_node_item().node_id > b.get_node_item().node_id;
    });
  }
  // All to the common queue; `left` as for Workers::Add.
  void AddCommon(TaggedNodeSeq* ready, int64_t left);
  void Send(int workers);
  void Work(bool home);
  void RunLocal(Local* local);
  void GiveBack(Local* local, size_t nodes);
  void Finish();

  const ExecutorShared& shared_;
  std::optional<Executor::Args> own_args_;  // Where the caller's may go before the step ends.
  const Executor::Args& args_;
  std::optional<StepFrame> frame_;
  bool watched_ = false;
  std::optional<Propagator> propagator_;
  OpKernelContext::Params params_;
  std::atomic<int64_t> outstanding_{0};
  Executor::DoneCallback done_;
  Turn* turn_ = nullptr;

  const bool home_;
  const bool inline_;
  int64_t batch_ns_ = std::numeric_limits<int64_t>::max();
  size_t batch_ops_ = 1;
  std::shared_ptr<const CostModel::Learned> learned_;
  std::shared_ptr<const CostModel::Learned> tried_;  // Null: nobody asks how long the step takes.
  OrderTrial::Order tried_order_ = OrderTrial::Order::kByCost;
  uint64_t began_ = 0;  // Ticks.
  std::shared_ptr<Workers> workers_;  // Null: scheduled normally.
  std::atomic<int32_t> batches_{0};
};

// Its inputs are its own: the thread that starts it goes on to other nodes.
template <class Propagator>
struct Step<Propagator>::AsyncNode : AsyncKernel {
  AsyncNode(Step* step, const Item& item, const Local& local, Entry* first_input)
      : AsyncKernel(*step->frame_, item.node.get_node_item(), local.params, item.scheduled),
        step(step),
        node(item.node),
        first_input(first_input),
        inputs(local.inputs.begin(), local.inputs.begin() + item.node.get_node_item().num_inputs),
        input_attributes(local.input_attributes.begin(),
                         local.input_attributes.begin() + item.node.get_node_item().num_inputs) {
    params_.inputs = inputs;
    params_.input_alloc_attrs = input_attributes;
  }

  void Ended(bool) override { step->EndAsync(this); }

  Step* const step;
  const TaggedNode node;
  Entry* const first_input;
  const absl::InlinedVector<TensorValue, 8> inputs;
  const absl::InlinedVector<tensorflow::AllocatorAttributes, 8> input_attributes;
};

template <class Propagator>
Step<Propagator>::Step(const ExecutorShared& shared, const Executor::Args& args, bool home)
    : shared_(shared),
      own_args_(home ? std::optional<Executor::Args>() : args),
      args_(home ? args : *own_args_),
      home_(home),
      inline_(shared.policy() == ExecutorPolicy::kInline || args.run_all_kernels_inline) {}

template <class Propagator>
absl::Status Step<Propagator>::Begin(TaggedNodeSeq* roots) {
  frame_.emplace(shared_, args_);
  TF_RETURN_IF_ERROR(frame_->Begin());
  frame_->Fill(&params_);
  watched_ = frame_->watch().any();
  propagator_.emplace(shared_.state(), args_.step_id, /*vlog=*/false);
  if (inline_) {
    workers_ = std::make_shared<Workers>(1, home_);
  } else if (shared_.cost_model() != nullptr && !frame_->watch().learning &&
             !shared_.keeps_order()) {
    learned_ = Order(shared_.cost_model()->learned());
    if (learned_ != nullptr) {
      batch_ns_ = shared_.cost_model()->settings().batch_ns;
      batch_ops_ = shared_.cost_model()->settings().batch_ops;
      workers_ = std::make_shared<Workers>(Threads(args_), home_,
                                           typename Workers::Settings{batch_ns_, kSpin});
    }
  }
  propagator_->ActivateRoots(shared_.state().root_nodes(), roots);
  outstanding_.store(roots->size(), std::memory_order_relaxed);
  return absl::OkStatus();
}

template <class Propagator>
std::shared_ptr<const CostModel::Learned> Step<Propagator>::Order(
    std::shared_ptr<const CostModel::Learned> learned) {
  if (learned == nullptr) return nullptr;
  const OrderTrial::Step step = learned->trial.Next();
  if (step.timed) {
    tried_ = learned;
    tried_order_ = step.order;
    began_ = Ticks();
  }
  return step.order == OrderTrial::Order::kByCost ? learned : nullptr;
}

template <class Propagator>
absl::Status Step<Propagator>::Run(Turn* turn) {
  turn_ = turn;
  TaggedNodeSeq roots;
  absl::Status begun = Begin(&roots);
  if (!begun.ok()) return begun;
  if (!roots.empty()) {
    if (shares()) {
      AddCommon(&roots, /*left=*/0);
      Work(/*home=*/true);
    } else {
      absl::Notification ended;
      done_ = [&ended](const absl::Status&) { ended.Notify(); };
      ScheduleNormally(roots, nullptr);
      ended.WaitForNotification();
    }
  }
  const absl::Status status = frame_->EndHere();
  TellTrial(status);
  return status;
}

template <class Propagator>
void Step<Propagator>::RunAsync(const ExecutorShared& shared, const Executor::Args& args,
                                Executor::DoneCallback done) {
  auto* step = new Step(shared, args, /*home=*/false);
  step->done_ = std::move(done);
  TaggedNodeSeq roots;
  absl::Status begun = step->Begin(&roots);
  if (!begun.ok()) step->frame_->Fail(begun);
  if (!begun.ok() || roots.empty()) {
    step->Finish();
  } else if (!step->shares()) {
    step->ScheduleNormally(roots, nullptr);
  } else if (!step->inline_) {
    // Counts as a node until all are scheduled: the step must not end, and go, before.
    step->outstanding_.fetch_add(1);
    const std::shared_ptr<Workers> workers = step->workers_;
    step->AddCommon(&roots, Workers::kNoWorker);
    if (step->outstanding_.fetch_sub(1) == 1 && workers->End()) step->Finish();
  } else {
    auto work = [step, roots = std::move(roots)]() mutable {
      step->workers_->Join();
      step->AddCommon(&roots, /*left=*/0);
      step->Work(/*home=*/false);
    };
    // Who did not ask for its own thread may have to stop the step, or to start another one that
    // this one waits for.
    if (args.run_all_kernels_inline) {
      work();
    } else {
      args.runner(std::move(work));
    }
  }
}

template <class Propagator>
bool Step<Propagator>::RunNode(const Item& item, Local* local) {
  const NodeItem& node = item.node.get_node_item();
  propagator_->MaybeMarkStarted(item.node);
  Entry* inputs = propagator_->GetInputTensors(item.node);
  local->MakeRoom(node);
  if (item.node.get_is_dead() && !node.is_transfer_node) {
    return EndNode(item.node, absl::OkStatus(), inputs, &local->outputs, &local->ready, local);
  }
  bool launched = false;
  absl::Status status = RunKernel(item, local, inputs, &launched);
  if (launched) return false;
  return EndNode(item.node, status, inputs, &local->outputs, &local->ready, local);
}

template <class Propagator>
absl::Status Step<Propagator>::RunKernel(const Item& item, Local* local, Entry* inputs,
                                         bool* launched) {
  const NodeItem& node = item.node.get_node_item();
  if (node.is_noop || node.const_tensor != nullptr) {
    if (!node.is_noop) {
      Entry& out = local->outputs[0];
      out.state = Entry::State::HAS_CONST_TENSOR;
      out.const_tensor = node.const_tensor;
      out.alloc_attr = node.output_attrs()[0];
    }
    if (TF_PREDICT_FALSE(frame_->watch().by_tensorflow())) {
      WatchedNode(*frame_, node, item.scheduled).RunNothing();
    } else if (watched_) {
      const uint64_t now = Now(local);
      frame_->Note(node, item.scheduled, now, now, 0);
    }
    return absl::OkStatus();
  }
  OpKernelContext::Params& params = local->params;
  absl::Status prepared = PrepareInputs(node, inputs, local->inputs.data(),
                                        local->input_attributes.data(), &params.is_input_dead);
  if (!prepared.ok()) return prepared;
  params.op_kernel = node.kernel;
  params.inputs = absl::MakeConstSpan(local->inputs.data(), node.num_inputs);
  params.input_alloc_attrs = absl::MakeConstSpan(local->input_attributes.data(), node.num_inputs);
  params.frame_iter = propagator_->GetFrameAndIter(item.node);
  params.output_attr_array = node.output_attrs();
  params.forward_from_array = node.forward_from();
  params.outputs_required_array = node.outputs_required.get();
  if (node.kernel_is_async || shared_.Blocks(node.node_id)) {
    *launched = true;
    (new AsyncNode(this, item, *local, inputs))->Start();
    return absl::OkStatus();
  }
  return Compute(item, local);
}

template <class Propagator>
absl::Status Step<Propagator>::Compute(const Item& item, Local* local) {
  const NodeItem& node = item.node.get_node_item();
  tensorflow::Device* device = frame_->device();
  if (TF_PREDICT_TRUE(!watched_)) {
    OpKernelContext context(&local->params, node.num_outputs);
    Expense& expense = shared_.expense();
    if (!shares() && expense.WantsTicks(node.node_id, local->turn++)) {
      const uint64_t start = Ticks();
      device->Compute(node.kernel, &context);
      expense.Add(node.node_id, Ticks() - start);
    } else {
      device->Compute(node.kernel, &context);
    }
    return ProcessOutputs(node, &context, local->outputs.data(), nullptr);
  }
  if (TF_PREDICT_TRUE(!frame_->watch().by_tensorflow())) {
    OpKernelContext context(&local->params, node.num_outputs);
    const uint64_t start = Ticks();
    device->Compute(node.kernel, &context);
    local->ended = Ticks();
    frame_->Note(node, item.scheduled, start, local->ended, local->ended - start);
    if (shared_.expense().IsMarked(node.node_id)) {
      shared_.expense().Add(node.node_id, local->ended - start);
    }
    return ProcessOutputs(node, &context, local->outputs.data(), nullptr);
  }
  WatchedNode watched(*frame_, node, item.scheduled);
  local->params.track_allocations = watched.TracksAllocations();
  OpKernelContext context(&local->params, node.num_outputs);
  watched.BeginRegion(context);
  watched.Begin();
  device->Compute(node.kernel, &context);
  const uint64_t end = local->ended = Ticks();
  watched.End(end, end - watched.start());
  watched.EndRegion();
  if (shared_.expense().IsMarked(node.node_id)) {
    shared_.expense().Add(node.node_id, end - watched.start());
  }
  absl::Status status = ProcessOutputs(node, &context, local->outputs.data(), watched.stats());
  watched.Done(&context);
  local->params.track_allocations = false;
  return status;
}

template <class Propagator>
void Step<Propagator>::EndAsync(AsyncNode* async) {
  const NodeItem& node = async->item();
  EntryVector outputs(node.num_outputs);
  absl::Status status =
      ProcessOutputs(node, async->context(), outputs.data(), async->EndWatch());
  async->DoneWatch();
  TaggedNodeSeq ready;
  const TaggedNode tagged = async->node;
  Entry* first_input = async->first_input;
  const std::shared_ptr<Workers> workers = workers_;
  delete async;
  if (!EndNode(tagged, status, first_input, &outputs, &ready, nullptr)) return;
  if (workers == nullptr || workers->End()) Finish();
}

template <class Propagator>
bool Step<Propagator>::EndNode(const TaggedNode& node, const absl::Status& status, Entry* inputs,
                               EntryVector* outputs, TaggedNodeSeq* ready, Local* local) {
  const NodeItem& item = node.get_node_item();
  for (int i = 0; i < item.num_inputs; ++i) inputs[i].ClearVal();
  propagator_->MaybeMarkCompleted(node);
  ready->clear();
  if (TF_PREDICT_TRUE(status.ok())) {
    propagator_->PropagateOutputs(node, outputs, ready);
    if (TF_PREDICT_FALSE(shared_.keeps_order())) SortById(ready);
  } else {
    frame_->Fail(status);
  }
  // What is left of a failed node must not outlive the step.
  Clear(item, outputs);
  if (ready->empty()) return outstanding_.fetch_sub(1) == 1;
  // This node counts until all behind it are scheduled: the step must not end, and go, before.
  if (local == nullptr) {
    outstanding_.fetch_add(ready->size());
    if (shares()) {
      AddCommon(ready, Workers::kNoWorker);
    } else {
      ScheduleNormally(*ready, nullptr);
    }
    return outstanding_.fetch_sub(1) == 1;
  }
  if (ready->size() > 1) outstanding_.fetch_add(ready->size() - 1);
  if (shares()) {
    ScheduleShared(ready, local);
  } else {
    ScheduleNormally(*ready, local);
  }
  return false;
}

template <class Propagator>
void Step<Propagator>::ScheduleNormally(const TaggedNodeSeq& ready, Local* local) {
  const uint64_t now = Now(local);
  if (local == nullptr) {
    for (const TaggedNode& node : ready) Dispatch(node, now);
    return;
  }
  if (ready.size() == 1 && local->empty()) {  // Mostly.
    local->Push({ready.front(), now}, 0);
    return;
  }
  const TaggedNode* kept = nullptr;
  for (const TaggedNode& node : ready) {
    if (node.get_is_dead() || !shared_.expense().IsExpensive(node.get_node_item().node_id)) {
      local->Push({node, now}, 0);
      continue;
    }
    if (kept != nullptr) Dispatch(*kept, now);
    kept = &node;
  }
  if (kept == nullptr) return;
  if (local->empty()) {
    local->Push({*kept, now}, 0);
  } else {
    Dispatch(*kept, now);
  }
}

template <class Propagator>
void Step<Propagator>::Dispatch(const TaggedNode& node, uint64_t scheduled) {
  args_.runner([this, item = Item{node, scheduled}] {
    Local local(params_);
    local.Push(item, 0);
    while (!local.empty()) {
      const Item next = local.Pop(0);
      if (RunNode(next, &local)) {
        Finish();
        return;
      }
    }
  });
}

template <class Propagator>
void Step<Propagator>::ScheduleShared(TaggedNodeSeq* ready, Local* local) {
  const uint64_t now = Now(local);
  if (inline_) {
    for (const TaggedNode& node : *ready) local->Push({node, now}, 0);
    return;
  }
  SortByPriority(ready);
  Common common;
  for (const TaggedNode& node : *ready) {
    const int64_t cost = CostOf(node);
    if (cost <= batch_ns_) {
      local->Push({node, now}, cost);
    } else {
      common.push_back({PriorityOf(node), cost, {node, now}});
    }
  }
  if (common.empty()) return;
  // What this thread would take next anyway, and has in its caches, need not go round by the queue.
  const typename Workers::Ready& first = common.front();
  const bool keeps_first = local->empty() && !workers_->HasBefore(first.priority);
  if (keeps_first) local->Push(first.item, first.cost);
  if (common.size() > size_t{keeps_first}) {
    Send(workers_->Add(common.data() + keeps_first, common.data() + common.size(), local->cost));
  }
}

template <class Propagator>
void Step<Propagator>::AddCommon(TaggedNodeSeq* ready, int64_t left) {
  const uint64_t now = Now(nullptr);
  SortByPriority(ready);
  Common common;
  for (const TaggedNode& node : *ready) {
    common.push_back({PriorityOf(node), CostOf(node), {node, now}});
  }
  Send(workers_->Add(common.data(), common.data() + common.size(), left));
}

template <class Propagator>
void Step<Propagator>::Send(int workers) {
  for (; workers > 0; --workers) {
    // The step may be gone when the pool gets to it; the queue never is.
    args_.runner([this, queue = workers_] {
      if (queue->Enter()) Work(/*home=*/false);
    });
  }
}

template <class Propagator>
void Step<Propagator>::Work(bool home) {
  const std::shared_ptr<Workers> workers = workers_;
  Local local(params_);
  while (true) {
    local.items.clear();
    local.next = 0;
    if (home) {
      if (!workers->TakeHome(batch_ns_, batch_ops_, &local.items, turn_)) return;
      if (turn_ != nullptr) turn_->Resume();
    } else {
      const auto took = workers->Take(batch_ns_, batch_ops_, &local.items);
      if (took == Workers::Took::kNothing) return;
      if (took == Workers::Took::kLast) break;
    }
    local.cost = 0;
    for (const Item& item : local.items) local.cost += CostOf(item.node);
    local.batch = batches_.fetch_add(1, std::memory_order_relaxed);
    RunLocal(&local);
  }
  Finish();
}

template <class Propagator>
void Step<Propagator>::RunLocal(Local* local) {
  int64_t spent = 0;
  size_t run = 0;
  while (!local->empty()) {
    const int64_t cost = CostOf(local->items[local->next].node);
    const Item item = local->Pop(cost);
    if (learned_ != nullptr) {
      shared_.cost_model()->Scheduled(item.node.get_node_item().node_id, local->batch);
      spent += cost;
      ++run;
    }
    if (RunNode(item, local)) {
      workers_->End();
      return;
    }
    // Between batches of short nodes: is there something better to do, or somebody to help?
    if ((spent > batch_ns_ || run >= batch_ops_) && !local->empty()) {
      spent = 0;
      run = 0;
      local->batch = batches_.fetch_add(1, std::memory_order_relaxed);
      if (workers_->HasBefore(PriorityOf(local->items[local->next].node))) {
        GiveBack(local, local->pending());
      } else if (local->cost > kWorthHelpBatches * batch_ns_ && workers_->WouldHelp()) {
        GiveBack(local, local->pending() / 2);
      }
    }
  }
}

template <class Propagator>
void Step<Propagator>::GiveBack(Local* local, size_t nodes) {
  Common common;
  for (; nodes > 0; --nodes) {
    const int64_t cost = CostOf(local->items[local->next].node);
    const Item& item = local->Pop(cost);
    common.push_back({PriorityOf(item.node), cost, item});
  }
  Send(workers_->Add(common.data(), common.data() + common.size(), local->cost));
}

template <class Propagator>
void Step<Propagator>::Finish() {
  if (home_) {
    // Run waits for it, and ends the frame itself.
    const Executor::DoneCallback done = std::move(done_);
    done(absl::OkStatus());
    return;
  }
  frame_->EndLater([this](const absl::Status& status) {
    TellTrial(status);
    const Executor::DoneCallback done = std::move(done_);
    const Executor::Args::Runner runner = args_.runner;
    const bool here = inline_;
    delete this;
    if (here) {
      done(status);
    } else {
      runner([done, status] { done(status); });
    }
  });
}

}  // namespace

absl::Status RunPropagated(const ExecutorShared& shared, const Executor::Args& args, Turn* turn) {
  if (shared.state().requires_control_flow_support()) {
    return Step<tensorflow::PropagatorState>(shared, args, /*home=*/true).Run(turn);
  }
  return Step<tensorflow::SimplePropagatorState>(shared, args, /*home=*/true).Run(turn);
}

void RunPropagatedAsync(const ExecutorShared& shared, const Executor::Args& args,
                        Executor::DoneCallback done) {
  if (shared.state().requires_control_flow_support()) {
    Step<tensorflow::PropagatorState>::RunAsync(shared, args, std::move(done));
  } else {
    Step<tensorflow::SimplePropagatorState>::RunAsync(shared, args, std::move(done));
  }
}

}  // namespace workbench
