#include "executor/scheduling/admission.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "executor/scheduling/workers.h"
#include "test/support/check.h"

namespace workbench {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using Client = Turns::Client;

constexpr hours kForEver{1};
// Who calls again within an hour comes back at once.
constexpr Turns::Settings kKept{2, kForEver, kForEver, kForEver};
// Nobody keeps a turn.
constexpr Turns::Settings kNotKept{1, kForEver, milliseconds{0}, kForEver};

// One call of a client whose calls come one after the other.
void Call(Turns* turns, Client* client) {
  CHECK(turns->Take(client));
  turns->Give(client);
}

// A thread that wants a turn, and holds it until it is told to end.
class Other {
 public:
  explicit Other(Turns* turns) : turns_(turns), client_(turns), thread_([this] { Run(); }) {}
  ~Other() { End(); }

  bool has_turn() const { return state_ == kHasTurn; }
  void WaitForTurn() const {
    while (state_ != kHasTurn) std::this_thread::yield();
  }
  void End() {
    end_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  enum State { kWaits, kHasTurn, kWithout };

  void Run() {
    const bool has_turn = turns_->Take(&client_);
    state_ = has_turn ? kHasTurn : kWithout;
    while (!end_) std::this_thread::yield();
    turns_->Pause(&client_);  // And does not come back.
  }

  Turns* const turns_;
  Client client_;
  std::atomic<State> state_{kWaits};
  std::atomic<bool> end_{false};
  std::thread thread_;
};

// Until it stands in the queue there is nothing to see; it never has a turn meanwhile.
void LetWait(const Other& other) {
  std::this_thread::sleep_for(milliseconds{30});
  CHECK(!other.has_turn());
}

TEST(NoMoreThanThereAreTurns) {
  Turns turns(kKept);
  Client first(&turns), second(&turns);
  CHECK(turns.Take(&first));
  CHECK(turns.Take(&second));
  Other third(&turns);
  LetWait(third);
  turns.Pause(&second);
  third.WaitForTurn();
  turns.Pause(&first);
}

TEST(TheOthersInTheOrderInWhichTheyCame) {
  Turns turns(kNotKept);
  Client mine(&turns);
  CHECK(turns.Take(&mine));
  std::vector<std::unique_ptr<Other>> others;
  for (int i = 0; i < 4; ++i) {
    others.push_back(std::make_unique<Other>(&turns));
    LetWait(*others.back());
  }
  turns.Give(&mine);
  for (size_t i = 0; i < others.size(); ++i) {
    others[i]->WaitForTurn();
    for (size_t later = i + 1; later < others.size(); ++later) CHECK(!others[later]->has_turn());
    others[i]->End();
  }
}

TEST(ImpatientOnesGoAheadWithoutATurn) {
  Turns turns({1, milliseconds{20}, kForEver, kForEver});
  Client holder(&turns), impatient(&turns);
  CHECK(turns.Take(&holder));
  CHECK(!turns.Take(&impatient));
  turns.Give(&holder);
  CHECK(turns.Take(&impatient));  // Nobody waits any more: the turn was not kept.
  turns.Give(&impatient);
}

TEST(WhoComesBackAtOnceKeepsHisTurnWhileOthersWait) {
  Turns turns(kKept);
  Client mine(&turns);
  Other running(&turns);
  running.WaitForTurn();
  Call(&turns, &mine);  // From here on it is known that he comes back.
  CHECK(turns.Take(&mine));
  Other waiting(&turns);
  LetWait(waiting);
  for (int i = 0; i < 3; ++i) {
    turns.Give(&mine);
    LetWait(waiting);
    CHECK(turns.Take(&mine));
  }
  turns.Pause(&mine);
  waiting.WaitForTurn();
}

TEST(WhoNeverCameBackKeepsNothing) {
  Turns turns(kKept);
  Client mine(&turns);
  Other running(&turns);
  running.WaitForTurn();
  CHECK(turns.Take(&mine));
  Other waiting(&turns);
  LetWait(waiting);
  turns.Give(&mine);
  waiting.WaitForTurn();
}

TEST(WhoPausedInACallHasNotComeBack) {
  Turns turns({2, kForEver, kForEver, milliseconds{200}});
  Client mine(&turns);
  Other running(&turns);
  running.WaitForTurn();
  Call(&turns, &mine);
  std::this_thread::sleep_for(milliseconds{300});  // He thinks for longer than a turn is kept.
  CHECK(turns.Take(&mine));
  turns.Pause(&mine);
  CHECK(turns.Resume(&mine));
  Other waiting(&turns);
  LetWait(waiting);
  turns.Give(&mine);
  waiting.WaitForTurn();
  CHECK(turns.kept() == 0);
}

TEST(WhoCameBackAndPausesInHisCallIsStillOneWhoComesBack) {
  Turns turns({2, kForEver, kForEver, milliseconds{200}});
  Client mine(&turns);
  Other running(&turns);
  running.WaitForTurn();
  Call(&turns, &mine);
  CHECK(turns.Take(&mine));
  turns.Pause(&mine);
  std::this_thread::sleep_for(milliseconds{300});
  CHECK(turns.Resume(&mine));
  Other waiting(&turns);
  LetWait(waiting);
  turns.Give(&mine);
  CHECK(turns.kept() == 1);
  CHECK(turns.Take(&mine));
  turns.Pause(&mine);
  waiting.WaitForTurn();
}

TEST(ACallMayEndWhileItIsPaused) {
  Turns turns(kKept);
  Client mine(&turns), other(&turns);
  CHECK(turns.Take(&mine));
  turns.Pause(&mine);
  CHECK(turns.Take(&other));
  Other running(&turns);
  running.WaitForTurn();  // The turn that was paused: all are taken now.
  turns.Give(&mine);
  Other waiting(&turns);
  LetWait(waiting);
  turns.Give(&other);
  waiting.WaitForTurn();
}

// What a step on the thread of its caller does with its turn. `begin` finds nodes ready and starts
// `waits` kernels that end later, of which each makes `behind` nodes ready.
int64_t AskedInAStep(int begin, int waits, int behind) {
  const int64_t before = Turns::Get().asked();
  Turn turn;
  Workers<int> workers(1, /*home=*/true);
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
  while (workers.TakeHome(0, 1, &taken, &turn)) {
    turn.Resume();
    ran += int(taken.size());
    taken.clear();
    if (ran < begin || others.joinable()) continue;
    others = std::thread([&] {
      for (int i = 0; i < waits; ++i) {
        std::this_thread::sleep_for(milliseconds{5});
        if (behind > 0) add(behind, Workers<int>::kNoWorker);
      }
      std::this_thread::sleep_for(milliseconds{5});
      if (waits > 0) workers.End();
    });
  }
  others.join();
  CHECK(ran == begin + waits * behind);
  return Turns::Get().asked() - before;
}

TEST(AStepAsksForATurnOnceAndAfterEachWaitThatGaveItSomethingToRun) {
  CHECK(AskedInAStep(1, 0, 0) == 1);
  CHECK(AskedInAStep(100, 0, 0) == 1);
  CHECK(AskedInAStep(100, 1, 0) == 1);  // It waits for its end alone.
  CHECK(AskedInAStep(100, 1, 50) == 2);
  CHECK(AskedInAStep(100, 3, 50) <= 4);
}

TEST(ATurnEndsWithTheStepThatIsOverItsTime) {
  Turns turns({2, kForEver, milliseconds{20}, kForEver});
  Client mine(&turns);
  Other running(&turns);
  running.WaitForTurn();
  Call(&turns, &mine);
  CHECK(turns.Take(&mine));
  Other waiting(&turns);
  LetWait(waiting);
  turns.Give(&mine);
  waiting.WaitForTurn();
}

TEST(TheLastTurnIsNeverKept) {
  Turns turns(kKept);
  Client first(&turns), second(&turns);
  Call(&turns, &first);
  Call(&turns, &second);
  CHECK(turns.Take(&first));
  CHECK(turns.Take(&second));
  Other waiting(&turns);
  LetWait(waiting);
  turns.Give(&first);
  LetWait(waiting);  // The first keeps his.
  turns.Give(&second);
  waiting.WaitForTurn();
}

TEST(WhoStaysAwayLosesHisTurnToTheNextThatIsCalled) {
  Turns turns({2, kForEver, kForEver, milliseconds{500}});
  Client mine(&turns), runs(&turns);
  Call(&turns, &mine);
  CHECK(turns.Take(&mine));
  CHECK(turns.Take(&runs));
  Other waiting(&turns);
  LetWait(waiting);
  turns.Give(&mine);
  Other second(&turns);
  std::this_thread::sleep_for(milliseconds{700});
  CHECK(!waiting.has_turn());
  turns.Pause(&runs);
  waiting.WaitForTurn();
  second.WaitForTurn();
  waiting.End();
  second.End();
  CHECK(turns.Take(&mine));  // Like anybody.
  turns.Give(&mine);
}

TEST(AThreadThatEndsLeavesItsTurn) {
  Turns turns(kKept);
  Other running(&turns);
  running.WaitForTurn();
  auto mine = std::make_unique<Client>(&turns);
  Call(&turns, mine.get());
  CHECK(turns.Take(mine.get()));
  Other waiting(&turns);
  LetWait(waiting);
  turns.Give(mine.get());
  LetWait(waiting);
  mine.reset();
  waiting.WaitForTurn();
}

TEST(ManyClientsNeverHaveMoreTurnsThanThereAre) {
  constexpr int kMost = 3, kThreads = 12, kCalls = 3000;
  Turns turns({kMost, kForEver, std::chrono::microseconds{50}, std::chrono::microseconds{20}});
  std::atomic<int> inside{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&turns, &inside, t] {
      Client client(&turns);
      for (int i = 0; i < kCalls; ++i) {
        CHECK(turns.Take(&client));
        CHECK(++inside <= kMost);
        --inside;
        if ((i + t) % 5 == 0) {
          turns.Pause(&client);
          CHECK(turns.Resume(&client));
          CHECK(++inside <= kMost);
          --inside;
        }
        turns.Give(&client);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // All are free again.
  std::vector<std::unique_ptr<Other>> others;
  for (int i = 0; i < kMost; ++i) {
    others.push_back(std::make_unique<Other>(&turns));
    others.back()->WaitForTurn();
  }
}

}  // namespace
}  // namespace workbench
