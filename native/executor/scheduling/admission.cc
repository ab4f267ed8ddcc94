#include "executor/scheduling/admission.h"

#include <algorithm>

#include "threading/allowed_cores.h"

namespace workbench {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// A slot often goes to a thread that sleeps; a second client keeps the core busy until it wakes up.
constexpr int kSlotsPerCore = 2;

// A step seldom takes longer; a step that begins so much later has lost little.
constexpr milliseconds kMaxWait{100};

// Ten times what it costs to wake a thread.
constexpr microseconds kMaxHold{500};

// A few times what Python needs between two calls.
constexpr microseconds kMaxIdle{300};

thread_local bool in_step = false;

StepAdmission::Client* OfThread() {
  static thread_local StepAdmission::Client client(&StepAdmission::Get());
  return &client;
}

}  // namespace

StepAdmission& StepAdmission::Get() {
  // Never destroyed: threads that run steps may outlive what is static here.
  static StepAdmission* admission =
      new StepAdmission({kSlotsPerCore * AllowedCores(), kMaxWait, kMaxHold, kMaxIdle});
  return *admission;
}

bool StepAdmission::BeginCall(Client* client) {
  const Clock::time_point now = Clock::now();
  client->called_soon_ = now - client->last_end_ <= settings_.max_idle;
  return client->has_slot_ = Acquire(client, now);
}

bool StepAdmission::Resume(Client* client) {
  return client->has_slot_ = Acquire(client, Clock::now());
}

bool StepAdmission::Acquire(Client* client, Clock::time_point now) {
  std::unique_lock<std::mutex> lock(mu_);
  ++requests_;
  if (client->keeps_slot_) {
    StopKeeping(client);
    return true;
  }
  ReleaseIdle(now);
  client->slot_since_ = now;
  if (free_ > 0) {
    --free_;
    return true;
  }
  Waiter waiter;
  const auto place = waiting_.insert(waiting_.end(), &waiter);
  if (waiter.admitted.wait_for(lock, settings_.max_wait, [&waiter] { return waiter.has_slot; })) {
    client->slot_since_ = Clock::now();
    return true;
  }
  waiting_.erase(place);
  return false;
}

void StepAdmission::EndCall(Client* client) {
  const Clock::time_point now = Clock::now();
  client->last_end_ = now;
  if (!client->has_slot_) return;
  client->has_slot_ = false;
  std::lock_guard<std::mutex> lock(mu_);
  ReleaseIdle(now);
  if (!waiting_.empty() && client->called_soon_ &&
      now - client->slot_since_ < settings_.max_hold &&
      int(keeping_.size()) + 1 < settings_.slots) {
    ++kept_;
    client->keeps_slot_ = true;
    keeping_.push_back(client);
  } else {
    Release();
  }
}

void StepAdmission::Pause(Client* client) {
  if (!client->has_slot_) return;
  client->has_slot_ = false;
  std::lock_guard<std::mutex> lock(mu_);
  ReleaseIdle(Clock::now());
  Release();
}

int64_t StepAdmission::requests() const {
  std::lock_guard<std::mutex> lock(mu_);
  return requests_;
}

int64_t StepAdmission::kept() const {
  std::lock_guard<std::mutex> lock(mu_);
  return kept_;
}

size_t StepAdmission::waiting() const {
  std::lock_guard<std::mutex> lock(mu_);
  return waiting_.size();
}

void StepAdmission::Remove(Client* client) {
  std::lock_guard<std::mutex> lock(mu_);
  if (!client->keeps_slot_) return;
  StopKeeping(client);
  Release();
}

void StepAdmission::StopKeeping(Client* client) {
  client->keeps_slot_ = false;
  keeping_.erase(std::find(keeping_.begin(), keeping_.end(), client));
}

void StepAdmission::ReleaseIdle(Clock::time_point now) {
  while (!keeping_.empty() && now - keeping_.front()->last_end_ > settings_.max_idle) {
    StopKeeping(keeping_.front());
    Release();
  }
}

void StepAdmission::Release() {
  if (waiting_.empty()) {
    ++free_;
    return;
  }
  Waiter* first = waiting_.front();
  waiting_.pop_front();
  first->has_slot = true;
  first->admitted.notify_one();
}

Admission::Admission() : outermost_(!in_step) {
  if (!outermost_) return;
  in_step = true;
  StepAdmission::Get().BeginCall(OfThread());
}

Admission::~Admission() {
  if (!outermost_) return;
  in_step = false;
  StepAdmission::Get().EndCall(OfThread());
}

void Admission::Pause() {
  if (!outermost_) return;
  paused_ = true;
  StepAdmission::Get().Pause(OfThread());
}

void Admission::Resume() {
  if (!paused_) return;
  paused_ = false;
  StepAdmission::Get().Resume(OfThread());
}

}  // namespace workbench
