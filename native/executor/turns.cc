#include "executor/turns.h"

#include <sched.h>

#include <algorithm>

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

int Cores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 1;
  return CPU_COUNT(&allowed);
}

thread_local bool in_step = false;

Turns::Client* OfThread() {
  static thread_local Turns::Client client(&Turns::Get());
  return &client;
}

}  // namespace

Turns& Turns::Get() {
  // Never destroyed: threads that run steps may outlive what is static here.
  static Turns* turns = new Turns({kPerCore * Cores(), kPatience, kKeep, kAbsent});
  return *turns;
}

bool Turns::Take(Client* client) {
  const Clock::time_point now = Clock::now();
  client->comes_back_ = now - client->gave_ <= settings_.absent;
  std::unique_lock<std::mutex> lock(mu_);
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

void Turns::Give(Client* client, bool leaves) {
  const Clock::time_point now = Clock::now();
  client->gave_ = now;
  std::lock_guard<std::mutex> lock(mu_);
  StopAbsent(now);
  if (!waiting_.empty() && !leaves && client->comes_back_ &&
      now - client->began_ < settings_.keep && int(keeping_.size()) + 1 < settings_.most) {
    client->keeps_ = true;
    keeping_.push_back(client);
  } else {
    Pass();
  }
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
  while (!keeping_.empty() && now - keeping_.front()->gave_ > settings_.absent) {
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
  has_turn_ = Turns::Get().Take(OfThread());
}

Turn::~Turn() {
  if (!outermost_) return;
  in_step = false;
  if (has_turn_) Turns::Get().Give(OfThread(), /*leaves=*/false);
}

void Turn::Pause() {
  if (outermost_ && has_turn_) Turns::Get().Give(OfThread(), /*leaves=*/true);
}

void Turn::Resume() {
  if (outermost_) has_turn_ = Turns::Get().Take(OfThread());
}

}  // namespace workbench
