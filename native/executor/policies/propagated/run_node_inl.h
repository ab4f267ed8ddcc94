#ifndef WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_RUN_NODE_INL_H_
#define WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_RUN_NODE_INL_H_

// Runs one node of a step: its inputs, its kernel, its outputs, and the nodes that get ready by it.

#include <algorithm>
#include <memory>

#include "executor/policies/propagated/step.h"
#include "executor/step/async_kernel.h"
#include "executor/step/node_io.h"
#include "executor/step/observed_node.h"

namespace workbench {

// Has a copy of the inputs: the thread that starts it goes on to other nodes.
template <class Propagator>
struct PropagatedStep<Propagator>::AsyncNode : AsyncKernel {
  AsyncNode(PropagatedStep* step, const Item& item, const Thread& thread, Entry* first_input)
      : AsyncKernel(*step->frame_, item.node.get_node_item(), thread.params, item.scheduled),
        step(step),
        node(item.node),
        first_input(first_input),
        inputs(thread.inputs.begin(),
               thread.inputs.begin() + item.node.get_node_item().num_inputs),
        input_attributes(
            thread.input_attributes.begin(),
            thread.input_attributes.begin() + item.node.get_node_item().num_inputs) {
    params_.inputs = inputs;
    params_.input_alloc_attrs = input_attributes;
  }

  void Ended(bool) override { step->EndAsync(this); }

  PropagatedStep* const step;
  const TaggedNode node;
  Entry* const first_input;
  const absl::InlinedVector<tensorflow::TensorValue, 8> inputs;
  const absl::InlinedVector<tensorflow::AllocatorAttributes, 8> input_attributes;
};

template <class Propagator>
bool PropagatedStep<Propagator>::RunNode(const Item& item, Thread* thread) {
  const tensorflow::NodeItem& node = item.node.get_node_item();
  propagator_->MaybeMarkStarted(item.node);
  Entry* inputs = propagator_->GetInputTensors(item.node);
  thread->MakeRoom(node);
  if (item.node.get_is_dead() && !node.is_transfer_node) {
    return EndNode(item.node, absl::OkStatus(), inputs, &thread->outputs, &thread->ready, thread);
  }
  bool launched = false;
  absl::Status status = RunKernel(item, thread, inputs, &launched);
  if (launched) return false;
  return EndNode(item.node, status, inputs, &thread->outputs, &thread->ready, thread);
}

template <class Propagator>
absl::Status PropagatedStep<Propagator>::RunKernel(const Item& item, Thread* thread,
                                                   Entry* inputs, bool* launched) {
  const tensorflow::NodeItem& node = item.node.get_node_item();
  if (node.is_noop || node.const_tensor != nullptr) return RunNothing(item, thread);
  absl::Status prepared =
      PrepareInputs(node, inputs, thread->inputs.data(), thread->input_attributes.data(),
                    &thread->params.is_input_dead);
  if (!prepared.ok()) return prepared;
  SetParams(item, thread);
  if (node.kernel_is_async || executor_.Blocks(node.node_id)) {
    *launched = true;
    (new AsyncNode(this, item, *thread, inputs))->Start();
    return absl::OkStatus();
  }
  return Compute(item, thread);
}

template <class Propagator>
absl::Status PropagatedStep<Propagator>::RunNothing(const Item& item, Thread* thread) {
  const tensorflow::NodeItem& node = item.node.get_node_item();
  if (!node.is_noop) {
    Entry& out = thread->outputs[0];
    out.state = Entry::State::HAS_CONST_TENSOR;
    out.const_tensor = node.const_tensor;
    out.alloc_attr = node.output_attrs()[0];
  }
  if (TF_PREDICT_FALSE(frame_->observers().by_tensorflow())) {
    ObservedNode(*frame_, node, item.scheduled).RunNothing();
  } else if (observed_) {
    const uint64_t now = Now(thread);
    frame_->Note(node, item.scheduled, now, now, 0);
  }
  return absl::OkStatus();
}

template <class Propagator>
void PropagatedStep<Propagator>::SetParams(const Item& item, Thread* thread) const {
  const tensorflow::NodeItem& node = item.node.get_node_item();
  OpKernelContext::Params& params = thread->params;
  params.op_kernel = node.kernel;
  params.inputs = absl::MakeConstSpan(thread->inputs.data(), node.num_inputs);
  params.input_alloc_attrs =
      absl::MakeConstSpan(thread->input_attributes.data(), node.num_inputs);
  params.frame_iter = propagator_->GetFrameAndIter(item.node);
  params.output_attr_array = node.output_attrs();
  params.forward_from_array = node.forward_from();
  params.outputs_required_array = node.outputs_required.get();
}

template <class Propagator>
absl::Status PropagatedStep<Propagator>::Compute(const Item& item, Thread* thread) {
  if (TF_PREDICT_TRUE(!observed_)) return ComputeUnobserved(item, thread);
  if (TF_PREDICT_FALSE(frame_->observers().by_tensorflow())) return ComputeObserved(item, thread);
  const tensorflow::NodeItem& node = item.node.get_node_item();
  OpKernelContext context(&thread->params, node.num_outputs);
  const uint64_t start = Ticks();
  frame_->device()->Compute(node.kernel, &context);
  thread->ended = Ticks();
  frame_->Note(node, item.scheduled, start, thread->ended, thread->ended - start,
               frame_->TracedBytes(&context));
  if (executor_.kernel_cost().IsMarkedExpensive(node.node_id)) {
    executor_.kernel_cost().Add(node.node_id, thread->ended - start);
  }
  return ProcessOutputs(node, &context, thread->outputs.data(), nullptr);
}

template <class Propagator>
absl::Status PropagatedStep<Propagator>::ComputeUnobserved(const Item& item, Thread* thread) {
  const tensorflow::NodeItem& node = item.node.get_node_item();
  OpKernelContext context(&thread->params, node.num_outputs);
  KernelCost& kernel_cost = executor_.kernel_cost();
  if (!has_queue() && kernel_cost.ShouldMeasure(node.node_id, thread->runs++)) {
    const uint64_t start = Ticks();
    frame_->device()->Compute(node.kernel, &context);
    kernel_cost.Add(node.node_id, Ticks() - start);
  } else {
    frame_->device()->Compute(node.kernel, &context);
  }
  return ProcessOutputs(node, &context, thread->outputs.data(), nullptr);
}

template <class Propagator>
absl::Status PropagatedStep<Propagator>::ComputeObserved(const Item& item, Thread* thread) {
  const tensorflow::NodeItem& node = item.node.get_node_item();
  ObservedNode observed(*frame_, node, item.scheduled);
  thread->params.track_allocations = observed.TracksAllocations();
  OpKernelContext context(&thread->params, node.num_outputs);
  observed.BeginRegion(context);
  observed.Begin();
  frame_->device()->Compute(node.kernel, &context);
  const uint64_t end = thread->ended = Ticks();
  observed.End(end, end - observed.start(), frame_->TracedBytes(&context));
  observed.EndRegion();
  if (executor_.kernel_cost().IsMarkedExpensive(node.node_id)) {
    executor_.kernel_cost().Add(node.node_id, end - observed.start());
  }
  absl::Status status =
      ProcessOutputs(node, &context, thread->outputs.data(), observed.stats());
  observed.Done(&context);
  thread->params.track_allocations = false;
  return status;
}

template <class Propagator>
void PropagatedStep<Propagator>::EndAsync(AsyncNode* async) {
  const tensorflow::NodeItem& node = async->item();
  EntryVector outputs(node.num_outputs);
  absl::Status status =
      ProcessOutputs(node, async->context(), outputs.data(), async->EndObservation());
  async->OutputsObserved();
  TaggedNodeSeq ready;
  const TaggedNode tagged = async->node;
  Entry* first_input = async->first_input;
  const std::shared_ptr<Queue> queue = queue_;
  delete async;
  if (!EndNode(tagged, status, first_input, &outputs, &ready, nullptr)) return;
  if (queue == nullptr || queue->End()) Finish();
}

template <class Propagator>
bool PropagatedStep<Propagator>::EndNode(const TaggedNode& node, const absl::Status& status,
                                         Entry* inputs, EntryVector* outputs,
                                         TaggedNodeSeq* ready, Thread* thread) {
  const tensorflow::NodeItem& item = node.get_node_item();
  for (int i = 0; i < item.num_inputs; ++i) inputs[i].ClearVal();
  propagator_->MaybeMarkCompleted(node);
  ready->clear();
  if (TF_PREDICT_TRUE(status.ok())) {
    propagator_->PropagateOutputs(node, outputs, ready);
    if (TF_PREDICT_FALSE(executor_.keeps_order())) SortById(ready);
  } else {
    frame_->Fail(status);
  }
  // The next node must find empty outputs, and the values of a failed node must not outlive the
  // step.
  for (int i = 0; i < item.num_outputs; ++i) {
    Entry& out = (*outputs)[i];
    out.ClearVal();
    out.alloc_attr = tensorflow::AllocatorAttributes();
  }
  if (ready->empty()) return outstanding_.fetch_sub(1) == 1;
  // This node counts until all nodes behind it are scheduled: the step must not end before.
  if (thread == nullptr) {
    outstanding_.fetch_add(ready->size());
    Schedule(ready, nullptr);
    return outstanding_.fetch_sub(1) == 1;
  }
  if (ready->size() > 1) outstanding_.fetch_add(ready->size() - 1);
  Schedule(ready, thread);
  return false;
}

// The propagator orders the successors of a node with many edges by address. As in stock
// TensorFlow, the nodes with the highest numbers go first.
template <class Propagator>
void PropagatedStep<Propagator>::SortById(TaggedNodeSeq* ready) {
  std::stable_sort(ready->begin(), ready->end(), [](const TaggedNode& a, const TaggedNode& b) {
    return a.get_node_item().node_id > b.get_node_item().node_id;
  });
}

template <class Propagator>
void PropagatedStep<Propagator>::Schedule(TaggedNodeSeq* ready, Thread* thread) {
  if (!has_queue()) {
    ScheduleNormally(*ready, thread);
  } else if (thread == nullptr) {
    AddToQueue(ready, Queue::kNotAWorker);
  } else if (inline_) {
    ScheduleInline(*ready, thread);
  } else {
    ScheduleByCost(ready, thread);
  }
}

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_POLICIES_PROPAGATED_RUN_NODE_INL_H_
