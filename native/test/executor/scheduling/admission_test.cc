#include "executor/scheduling/admission.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "executor/scheduling/workers.h"
#include "test/support/check.h"

namespace workbench {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using Client = StepAdmission::Client;

constexpr hours kForEver{1};
// A client that calls again within an hour keeps its slot.
constexpr StepAdmission::Settings kKeeping{2, kForEver, kForEver, kForEver};
// No client keeps a slot.
constexpr StepAdmission::Settings kNotKeeping{1, kForEver, milliseconds{0}, kForEver};

// One call of a client whose calls come one after the other.
void Call(StepAdmission* admission, Client* client) {
  CHECK(admission->BeginCall(client));
  admission->EndCall(client);
}

// A thread that asks for a slot, and holds it until End.
class Other {
 public:
  explicit Other(StepAdmission* admission)
      : admission_(admission), client_(admission), thread_([this] { Run(); }) {}
  ~Other() { End(); }

  bool has_slot() const { return state_ == kHasSlot; }
  void WaitForSlot() const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (state_ != kHasSlot) {
      CHECK(std::chrono::steady_clock::now() < until);
      std::this_thread::yield();
    }
  }
  void End() {
    end_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  enum State { kWaits, kHasSlot, kWithout };

  void Run() {
    const bool has_slot = admission_->BeginCall(&client_);
    state_ = has_slot ? kHasSlot : kWithout;
    while (!end_) std::this_thread::yield();
    admission_->Pause(&client_);  // And does not call again.
  }

  StepAdmission* const admission_;
  Client client_;
  std::atomic<State> state_{kWaits};
  std::atomic<bool> end_{false};
  std::thread thread_;
};

// Returns once `waiting` clients wait in the queue, `other` the last of them.
void LetWait(const StepAdmission& admission, const Other& other, size_t waiting = 1) {
  while (admission.waiting() < waiting) {
    CHECK(!other.has_slot());
    std::this_thread::yield();
  }
  CHECK_EQ(admission.waiting(), waiting);
  CHECK(!other.has_slot());
}

TEST(NoMoreClientsRunThanThereAreSlots) {
  StepAdmission admission(kKeeping);
  Client first(&admission), second(&admission);
  CHECK(admission.BeginCall(&first));
  CHECK(admission.BeginCall(&second));
  Other third(&admission);
  LetWait(admission, third);
  admission.Pause(&second);
  third.WaitForSlot();
  admission.Pause(&first);
}

TEST(ClientsThatWaitAreAdmittedInTheirOrder) {
  StepAdmission admission(kNotKeeping);
  Client mine(&admission);
  CHECK(admission.BeginCall(&mine));
  std::vector<std::unique_ptr<Other>> others;
  for (int i = 0; i < 4; ++i) {
    others.push_back(std::make_unique<Other>(&admission));
    LetWait(admission, *others.back(), others.size());
  }
  admission.EndCall(&mine);
  for (size_t i = 0; i < others.size(); ++i) {
    others[i]->WaitForSlot();
    for (size_t later = i + 1; later < others.size(); ++later) CHECK(!others[later]->has_slot());
    others[i]->End();
  }
}

TEST(AClientThatWaitedForMaxWaitGoesAheadWithoutASlot) {
  StepAdmission admission({1, milliseconds{20}, kForEver, kForEver});
  Client holder(&admission), impatient(&admission);
  CHECK(admission.BeginCall(&holder));
  CHECK(!admission.BeginCall(&impatient));
  admission.EndCall(&holder);
  CHECK(admission.BeginCall(&impatient));  // No client waits any more: the slot was not kept.
  admission.EndCall(&impatient);
}

TEST(AClientThatCallsAgainAtOnceKeepsItsSlotWhileOthersWait) {
  StepAdmission admission(kKeeping);
  Client mine(&admission);
  Other running(&admission);
  running.WaitForSlot();
  Call(&admission, &mine);  // From here on it is known to call again.
  CHECK(admission.BeginCall(&mine));
  Other waiting(&admission);
  LetWait(admission, waiting);
  for (int i = 0; i < 3; ++i) {
    admission.EndCall(&mine);
    LetWait(admission, waiting);
    CHECK(admission.BeginCall(&mine));
  }
  admission.Pause(&mine);
  waiting.WaitForSlot();
}

TEST(AClientThatCallsForTheFirstTimeKeepsNoSlot) {
  StepAdmission admission(kKeeping);
  Client mine(&admission);
  Other running(&admission);
  running.WaitForSlot();
  CHECK(admission.BeginCall(&mine));
  Other waiting(&admission);
  LetWait(admission, waiting);
  admission.EndCall(&mine);
  waiting.WaitForSlot();
}

TEST(APauseWithinACallIsNoTimeBetweenCalls) {
  StepAdmission admission({2, kForEver, kForEver, milliseconds{200}});
  Client mine(&admission);
  Other running(&admission);
  running.WaitForSlot();
  Call(&admission, &mine);
  std::this_thread::sleep_for(milliseconds{300});  // The client is idle for longer than max_idle.
  CHECK(admission.BeginCall(&mine));
  admission.Pause(&mine);
  CHECK(admission.Resume(&mine));
  Other waiting(&admission);
  LetWait(admission, waiting);
  admission.EndCall(&mine);
  waiting.WaitForSlot();
  CHECK_EQ(admission.kept(), 0);
}

TEST(AClientThatCalledAgainAtOnceAndPausesInItsCallStillKeepsItsSlot) {
  StepAdmission admission({2, kForEver, kForEver, milliseconds{200}});
  Client mine(&admission);
  Other running(&admission);
  running.WaitForSlot();
  Call(&admission, &mine);
  CHECK(admission.BeginCall(&mine));
  admission.Pause(&mine);
  std::this_thread::sleep_for(milliseconds{300});
  CHECK(admission.Resume(&mine));
  Other waiting(&admission);
  LetWait(admission, waiting);
  admission.EndCall(&mine);
  CHECK_EQ(admission.kept(), 1);
  CHECK(admission.BeginCall(&mine));
  admission.Pause(&mine);
  waiting.WaitForSlot();
}

TEST(ACallMayEndWhileItIsPaused) {
  StepAdmission admission(kKeeping);
  Client mine(&admission), other(&admission);
  CHECK(admission.BeginCall(&mine));
  admission.Pause(&mine);
  CHECK(admission.BeginCall(&other));
  Other running(&admission);
  running.WaitForSlot();  // The slot of the paused call: now all are taken.
  admission.EndCall(&mine);
  Other waiting(&admission);
  LetWait(admission, waiting);
  admission.EndCall(&other);
  waiting.WaitForSlot();
}

// How often a step on the thread of its caller asks for a slot. The step begins with `begin` ready
// nodes and starts `waits` kernels that end later, each of which makes `behind` nodes ready.
int64_t RequestsOfAStep(int begin, int waits, int behind) {
  const int64_t before = StepAdmission::Get().requests();
  Admission admission;
  Workers<int> workers(1, /*has_caller=*/true);
  using Ready = Workers<int>::Ready;
  const auto add = [&workers](int nodes, int64_t left) {
    const std::vector<Ready> ready(nodes, Ready{0, 0, 1});
    workers.Add(ready.data(), ready.data() + nodes, left);
  };
  add(begin, 0);
  if (waits == 0) workers.End();
  std::vector<int> taken;
  std::thread others;
  int ran = 0;
  while (workers.TakeAsCaller(0, 1, &taken, &admission)) {
    admission.Resume();
    ran += int(taken.size());
    taken.clear();
    if (ran < begin || others.joinable()) continue;
    others = std::thread([&] {
      for (int i = 0; i < waits; ++i) {
        std::this_thread::sleep_for(milliseconds{5});
        if (behind > 0) add(behind, Workers<int>::kNotAWorker);
      }
      std::this_thread::sleep_for(milliseconds{5});
      if (waits > 0) workers.End();
    });
  }
  others.join();
  CHECK_EQ(ran, begin + waits * behind);
  return StepAdmission::Get().requests() - before;
}

TEST(AStepAsksForASlotOnceAndAfterEachWaitThatMadeNodesReady) {
  CHECK_EQ(RequestsOfAStep(1, 0, 0), 1);
  CHECK_EQ(RequestsOfAStep(100, 0, 0), 1);
  CHECK_EQ(RequestsOfAStep(100, 1, 0), 1);  // It waits for its end alone.
  CHECK_EQ(RequestsOfAStep(100, 1, 50), 2);
  CHECK(RequestsOfAStep(100, 3, 50) <= 4);
}

TEST(AStepThatOutlivesMaxHoldKeepsItsSlotToItsEndAlone) {
  StepAdmission admission({2, kForEver, milliseconds{20}, kForEver});
  Client mine(&admission);
  Other running(&admission);
  running.WaitForSlot();
  Call(&admission, &mine);
  CHECK(admission.BeginCall(&mine));
  Other waiting(&admission);
  LetWait(admission, waiting);
  std::this_thread::sleep_for(milliseconds{30});
  CHECK(!waiting.has_slot());
  admission.EndCall(&mine);
  waiting.WaitForSlot();
}

TEST(TheLastSlotIsNeverKept) {
  StepAdmission admission(kKeeping);
  Client first(&admission), second(&admission);
  Call(&admission, &first);
  Call(&admission, &second);
  CHECK(admission.BeginCall(&first));
  CHECK(admission.BeginCall(&second));
  Other waiting(&admission);
  LetWait(admission, waiting);
  admission.EndCall(&first);
  LetWait(admission, waiting);  // The first client keeps its slot.
  admission.EndCall(&second);
  waiting.WaitForSlot();
}

TEST(AClientThatStaysAwayLosesItsSlotWhenAnotherReleasesOne) {
  StepAdmission admission({2, kForEver, kForEver, milliseconds{500}});
  Client mine(&admission), runs(&admission);
  Call(&admission, &mine);
  CHECK(admission.BeginCall(&mine));
  CHECK(admission.BeginCall(&runs));
  Other waiting(&admission);
  LetWait(admission, waiting);
  admission.EndCall(&mine);
  Other second(&admission);
  LetWait(admission, second, 2);
  std::this_thread::sleep_for(milliseconds{700});
  CHECK(!waiting.has_slot());
  admission.Pause(&runs);
  waiting.WaitForSlot();
  second.WaitForSlot();
  waiting.End();
  second.End();
  CHECK(admission.BeginCall(&mine));  // Like any other client.
  admission.EndCall(&mine);
}

TEST(AThreadThatEndsReleasesTheSlotThatItKept) {
  StepAdmission admission(kKeeping);
  Other running(&admission);
  running.WaitForSlot();
  auto mine = std::make_unique<Client>(&admission);
  Call(&admission, mine.get());
  CHECK(admission.BeginCall(mine.get()));
  Other waiting(&admission);
  LetWait(admission, waiting);
  admission.EndCall(mine.get());
  LetWait(admission, waiting);
  mine.reset();
  waiting.WaitForSlot();
}

TEST(ManyClientsNeverHoldMoreSlotsThanThereAre) {
  constexpr int kSlots = 3, kThreads = 12, kCalls = 3000;
  StepAdmission admission(
      {kSlots, kForEver, std::chrono::microseconds{50}, std::chrono::microseconds{20}});
  std::atomic<int> inside{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&admission, &inside, t] {
      Client client(&admission);
      for (int i = 0; i < kCalls; ++i) {
        CHECK(admission.BeginCall(&client));
        CHECK(++inside <= kSlots);
        --inside;
        if ((i + t) % 5 == 0) {
          admission.Pause(&client);
          CHECK(admission.Resume(&client));
          CHECK(++inside <= kSlots);
          --inside;
        }
        admission.EndCall(&client);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // All slots are free again.
  std::vector<std::unique_ptr<Other>> others;
  for (int i = 0; i < kSlots; ++i) {
    others.push_back(std::make_unique<Other>(&admission));
    others.back()->WaitForSlot();
  }
}

}  // namespace
}  // namespace workbench
