#include "staging/buffer/deadline.h"

#include <condition_variable>
#include <mutex>
#include <vector>

#include "test/support/check.h"
#include "test/support/latch.h"
#include "test/support/no_threads.h"

namespace workbench {
namespace {

using test::Latch;
using Clock = DeadlineThread::Clock;

Clock::time_point In(int millis) { return Clock::now() + std::chrono::milliseconds(millis); }
Clock::time_point Never() { return Clock::now() + std::chrono::hours(1000); }

TEST(FiresInOrderOfDeadlines) {
  auto deadlines = DeadlineThread::Acquire();
  std::mutex mu;
  std::vector<int> order;
  Latch latch(3);
  const auto note = [&](int which) {
    return [&, which] {
      {
        std::lock_guard<std::mutex> lock(mu);
        order.push_back(which);
      }
      latch.CountDown();
    };
  };
  const auto start = Clock::now();
  deadlines->Schedule(start + std::chrono::milliseconds(60), note(3));
  deadlines->Schedule(start + std::chrono::milliseconds(20), note(1));
  deadlines->Schedule(start + std::chrono::milliseconds(40), note(2));
  latch.Wait();
  CHECK(Clock::now() >= start + std::chrono::milliseconds(60));
  CHECK((order == std::vector<int>{1, 2, 3}));
}

TEST(AnEarlierDeadlineWakesTheThread) {
  auto deadlines = DeadlineThread::Acquire();
  Latch latch(1);
  deadlines->Schedule(Never(), [] {});
  deadlines->Schedule(In(1), [&] { latch.CountDown(); });
  latch.Wait();
  CHECK_EQ(deadlines->pending(), 1u);
}

TEST(ACancelledDeadlineDoesNotFire) {
  auto deadlines = DeadlineThread::Acquire();
  bool fired = false;
  Latch cancelled(1), passed(1);
  // Holds the thread until the deadline behind it is cancelled, however slow the machine is.
  const auto when = Clock::now();
  deadlines->Schedule(when, [&] { cancelled.Wait(); });
  const DeadlineThread::Id id = deadlines->Schedule(when, [&] { fired = true; });
  deadlines->Schedule(when, [&] { passed.CountDown(); });
  deadlines->Cancel(id);
  deadlines->Cancel(id);  // A second time is nothing.
  cancelled.CountDown();
  passed.Wait();
  CHECK(!fired);
  CHECK_EQ(deadlines->pending(), 0u);
}

TEST(AFunctionMaySchedule) {
  auto deadlines = DeadlineThread::Acquire();
  Latch latch(1);
  deadlines->Schedule(In(0), [&, d = deadlines.get()] {
    d->Schedule(In(0), [&] { latch.CountDown(); });
  });
  latch.Wait();
}

TEST(DeadlinesPassUnnoticedWhereNoThreadIsToBeHad) {
  test::WithoutThreads([] {
    DeadlineThread deadlines;
    const auto id = deadlines.Schedule(DeadlineThread::Clock::now(), [] {});
    deadlines.Schedule(DeadlineThread::Clock::now(), [] {});
    deadlines.Cancel(id);
    CHECK_EQ(deadlines.pending(), size_t{1});
  });
}

TEST(OneThreadForAllWhileHeld) {
  auto first = DeadlineThread::Acquire();
  CHECK(first == DeadlineThread::Acquire());
  std::weak_ptr<DeadlineThread> watched = first;
  first->Schedule(Never(), [] {});
  first.reset();
  CHECK(watched.expired());
}

TEST(TheLastOwnerMayGoOnTheThreadItself) {
  auto deadlines = std::make_shared<DeadlineThread>();
  Latch owned(1), gone(1);
  DeadlineThread* raw = deadlines.get();
  raw->Schedule(In(0), [held = std::move(deadlines), &owned, &gone]() mutable {
    owned.CountDown();
    held.reset();
    gone.CountDown();
  });
  owned.Wait();
  gone.Wait();
}

}  // namespace
}  // namespace workbench
