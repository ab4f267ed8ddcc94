#include "test/executor/step/fake_step.h"

#include <chrono>
#include <utility>

#include "test/support/check.h"
#include "tracing/ticks.h"

namespace workbench::test {
namespace {

constexpr int kMostWorkers = 3;
constexpr std::chrono::microseconds kSpin{5};
constexpr int64_t kMinSharedBatches = 1;

}  // namespace

bool Cancellation::Register(std::function<void()> then) {
  std::lock_guard<std::mutex> lock(mu_);
  if (cancelled_) return false;
  waiting_.push_back(std::move(then));
  return true;
}

void Cancellation::Cancel() {
  std::vector<std::function<void()>> waiting;
  {
    std::lock_guard<std::mutex> lock(mu_);
    cancelled_ = true;
    waiting.swap(waiting_);
  }
  for (const auto& then : waiting) then();
}

FakeStep::FakeStep(const Place& place, Cancellation* cancellation, bool has_caller)
    : place_(place),
      cancellation_(cancellation),
      has_caller_(has_caller),
      propagator_(*place.graph) {}

bool FakeStep::Run(const Place& place, Cancellation* cancellation) {
  FakeStep step(place, cancellation, /*has_caller=*/true);
  step.admission_.emplace();
  std::vector<int32_t> roots;
  step.Begin(&roots);
  step.AddCommon(roots, /*left=*/0);
  step.Work(/*as_caller=*/true);
  step.RecordInTrial();
  CHECK(step.failed_ || step.propagator_.HasRunAll());
  return !step.failed_;
}

void FakeStep::RunAsync(const Place& place, Cancellation* cancellation,
                        std::function<void(bool)> done) {
  auto* step = new FakeStep(place, cancellation, /*has_caller=*/false);
  step->done_ = std::move(done);
  std::vector<int32_t> roots;
  step->Begin(&roots);
  // Counts as a node until all are scheduled: the step must not end, and go, before.
  step->outstanding_.fetch_add(1);
  const std::shared_ptr<Queue> workers = step->workers_;
  step->AddCommon(roots, Queue::kNotAWorker);
  if (step->outstanding_.fetch_sub(1) == 1 && workers->End()) step->Finish();
}

void FakeStep::Begin(std::vector<int32_t>* roots) {
  CostModel* model = place_.graph->model.get();
  learning_ = model->BeginStep();
  if (!learning_ && !place_.one_worker) {
    if (auto learned = model->learned(); learned != nullptr) {
      const OrderTrial::Step trial = learned->trial.Next();
      if (trial.timed) {
        tried_ = learned;
        tried_order_ = trial.order;
        began_ = Ticks();
      }
      learned_ = std::move(learned);
      batch_ns_ = model->settings().batch_ns;
      batch_ops_ = size_t(model->settings().batch_ops);
    }
  }
  workers_ = std::make_shared<Queue>(place_.one_worker ? 1 : kMostWorkers, has_caller_,
                                     Queue::Settings{learned_ == nullptr ? 0 : batch_ns_, kSpin});
  propagator_.ActivateRoots(roots);
  outstanding_.store(int64_t(roots->size()), std::memory_order_relaxed);
}

bool FakeStep::RunNode(int32_t node, Local* local) {
  if (place_.graph->kind[node] != FakeGraph::Kind::kHere) {
    Launch(node);
    return false;
  }
  const uint64_t start = Ticks();
  const bool ok = !failed_.load(std::memory_order_relaxed);
  if (learning_) place_.graph->model->Add(node, Ticks() - start);
  return EndNode(node, ok, local);
}

// The node ends by whoever comes first; the other finds the step gone.
void FakeStep::Launch(int32_t node) {
  const auto ended = std::make_shared<std::atomic<bool>>(false);
  const auto end = [this, node, ended](bool ok) {
    if (!ended->exchange(true)) EndAsync(node, ok);
  };
  const bool waits = place_.graph->kind[node] == FakeGraph::Kind::kWaits;
  Pool* const others = place_.others;
  if (waits && !cancellation_->Register([end] { end(false); })) {
    end(false);
  } else {
    others->Run([end] { end(true); });
  }
}

void FakeStep::EndAsync(int32_t node, bool ok) {
  const std::shared_ptr<Queue> workers = workers_;
  if (EndNode(node, ok, nullptr) && workers->End()) Finish();
}

bool FakeStep::EndNode(int32_t node, bool ok, Local* local) {
  std::vector<int32_t> ready;
  if (ok) {
    propagator_.Propagate(node, &ready);
  } else {
    propagator_.Drop(node);
    failed_.store(true, std::memory_order_relaxed);
  }
  if (ready.empty()) return outstanding_.fetch_sub(1) == 1;
  if (local == nullptr) {
    outstanding_.fetch_add(int64_t(ready.size()));
    AddCommon(ready, Queue::kNotAWorker);
    return outstanding_.fetch_sub(1) == 1;
  }
  outstanding_.fetch_add(int64_t(ready.size()) - 1);
  Schedule(ready, local);
  return false;
}

void FakeStep::Schedule(const std::vector<int32_t>& ready, Local* local) {
  std::vector<Queue::Ready> common;
  for (const int32_t node : ready) {
    const int64_t cost = CostOf(node);
    const bool first = local->empty() && !workers_->HasHigher(PriorityOf(node));
    if (place_.one_worker || (learned_ != nullptr && cost <= batch_ns_) || first) {
      local->items.push_back(node);
      local->cost += cost;
    } else {
      common.push_back({PriorityOf(node), cost, node});
    }
  }
  if (common.empty()) return;
  Send(workers_->Add(common.data(), common.data() + common.size(), local->cost));
}

void FakeStep::AddCommon(const std::vector<int32_t>& ready, int64_t left) {
  std::vector<Queue::Ready> common;
  for (const int32_t node : ready) common.push_back({PriorityOf(node), CostOf(node), node});
  Send(workers_->Add(common.data(), common.data() + common.size(), left));
}

void FakeStep::ReturnToQueue(Local* local, size_t nodes) {
  const auto first = local->items.begin() + local->next;
  const std::vector<int32_t> given(first, first + nodes);
  for (const int32_t node : given) local->cost -= CostOf(node);
  local->next += nodes;
  AddCommon(given, local->cost);
}

void FakeStep::Send(int workers) {
  for (; workers > 0; --workers) {
    place_.pool->Run([this, queue = workers_] {
      if (queue->Enter()) Work(/*as_caller=*/false);
    });
  }
}

void FakeStep::Work(bool as_caller) {
  const std::shared_ptr<Queue> workers = workers_;
  Local local;
  while (true) {
    local.items.clear();
    local.next = 0;
    local.cost = 0;
    if (as_caller) {
      Admission* const admission = admission_ ? &*admission_ : nullptr;
      if (!workers->TakeAsCaller(batch_ns_, batch_ops_, &local.items, admission)) return;
      if (admission != nullptr) admission->Resume();
    } else {
      const Queue::Took took = workers->Take(batch_ns_, batch_ops_, &local.items);
      if (took == Queue::Took::kNothing) return;
      if (took == Queue::Took::kLast) break;
    }
    for (const int32_t node : local.items) local.cost += CostOf(node);
    local.batch = batches_.fetch_add(1, std::memory_order_relaxed);
    RunLocal(&local);
  }
  Finish();
}

void FakeStep::RunLocal(Local* local) {
  size_t run = 0;
  while (!local->empty()) {
    const int32_t node = local->items[local->next++];
    local->cost -= CostOf(node);
    if (learned_ != nullptr) place_.graph->model->Scheduled(node, local->batch);
    if (RunNode(node, local)) {
      workers_->End();
      return;
    }
    if (learned_ == nullptr || ++run < batch_ops_ || local->empty()) continue;
    run = 0;
    if (workers_->HasHigher(PriorityOf(local->items[local->next]))) {
      ReturnToQueue(local, local->pending());
    } else if (local->cost > kMinSharedBatches * batch_ns_ && workers_->HasSpareWorker()) {
      ReturnToQueue(local, local->pending() / 2);
    }
  }
}

void FakeStep::RecordInTrial() {
  if (tried_ != nullptr && !failed_) tried_->trial.Record(tried_order_, Ticks() - began_);
}

void FakeStep::Finish() {
  CHECK(!has_caller_);
  RecordInTrial();
  CHECK(failed_ || propagator_.HasRunAll());
  const std::function<void(bool)> done = std::move(done_);
  const bool ok = !failed_;
  delete this;
  done(ok);
}

}  // namespace workbench::test
