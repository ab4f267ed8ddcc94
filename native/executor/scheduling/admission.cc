#include "executor/scheduling/admission.h"

#include <algorithm>

#include "executor/scheduling/allowed_cores.h"

namespace workbench {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// A turn goes to a thread that sleeps; another one keeps the core busy until it has woken up.
constexpr int kPerCore = 2;

// A step seldom takes longer; a step that takes its turn late has lost little.
constexpr milliseconds kPatience{100};

// Ten times what it costs to wake a thread.
constexpr microseconds kKeep{500};

// Some times what Python needs between two calls.
constexpr microseconds kAbsent{300};

thread_local bool in_step = false;

Turns::Client* OfThread() {
  static thread_local Turns::Client client(&Turns::Get());
  return &client;
}

}  // namespace

Turns& Turns::Get() {
  // Never destroyed: threads that run steps may outlive what is static here.
  static Turns* turns = new Turns({kPerCore * AllowedCores(), kPatience, kKeep, kAbsent});
  return *turns;
}

bool Turns::Take(Client* client) {
  const Clock::time_point now = Clock::now();
  client->comes_back_ = now - client->ended_ <= settings_.absent;
  return client->has_turn_ = Enter(client, now);
}

bool Turns::Resume(Client* client) { return client->has_turn_ = Enter(client, Clock::now()); }

bool Turns::Enter(Client* client, Clock::time_point now) {
  std::unique_lock<std::mutex> lock(mu_);
  ++asked_;
  if (client->keeps_) {
    EndKeeping(client);
    return true;
  }
  StopAbsent(now);
  client->began_ = now;
  if (free_ > 0) {
    --free_;
    return true;
  }
  Waiter waiter;
  const auto place = waiting_.insert(waiting_.end(), &waiter);
  if (waiter.called.wait_for(lock, settings_.patience, [&waiter] { return waiter.has_turn; })) {
    client->began_ = Clock::now();
    return true;
  }
  waiting_.erase(place);
  return false;
}

void Turns::Give(Client* client) {
  const Clock::time_point now = Clock::now();
  client->ended_ = now;
  if (!client->has_turn_) return;
  client->has_turn_ = false;
  std::lock_guard<std::mutex> lock(mu_);
  StopAbsent(now);
  if (!waiting_.empty() && client->comes_back_ && now - client->began_ < settings_.keep &&
      int(keeping_.size()) + 1 < settings_.most) {
    ++kept_;
    client->keeps_ = true;
    keeping_.push_back(client);
  } else {
    Pass();
  }
}

void Turns::Pause(Client* client) {
  if (!client->has_turn_) return;
  client->has_turn_ = false;
  std::lock_guard<std::mutex> lock(mu_);
  StopAbsent(Clock::now());
  Pass();
}

int64_t Turns::asked() const {
  std::lock_guard<std::mutex> lock(mu_);
  return asked_;
}

int64_t Turns::kept() const {
  std::lock_guard<std::mutex> lock(mu_);
  return kept_;
}

void Turns::Leave(Client* client) {
  std::lock_guard<std::mutex> lock(mu_);
  if (!client->keeps_) return;
  EndKeeping(client);
  Pass();
}

void Turns::EndKeeping(Client* client) {
  client->keeps_ = false;
  keeping_.erase(std::find(keeping_.begin(), keeping_.end(), client));
}

void Turns::StopAbsent(Clock::time_point now) {
  while (!keeping_.empty() && now - keeping_.front()->ended_ > settings_.absent) {
    EndKeeping(keeping_.front());
    Pass();
  }
}

void Turns::Pass() {
  if (waiting_.empty()) {
    ++free_;
    return;
  }
  Waiter* first = waiting_.front();
  waiting_.pop_front();
  first->has_turn = true;
  first->called.notify_one();
}

Turn::Turn() : outermost_(!in_step) {
  if (!outermost_) return;
  in_step = true;
  Turns::Get().Take(OfThread());
}

Turn::~Turn() {
  if (!outermost_) return;
  in_step = false;
  Turns::Get().Give(OfThread());
}

void Turn::Pause() {
  if (!outermost_) return;
  paused_ = true;
  Turns::Get().Pause(OfThread());
}

void Turn::Resume() {
  if (!paused_) return;
  paused_ = false;
  Turns::Get().Resume(OfThread());
}

}  // namespace workbench
