#include "table/room_lock.h"

#include <atomic>
#include <thread>
#include <vector>

#include "test/support/check.h"

namespace workbench {
namespace {

TEST(ManyAreInARoomAndNobodyInAnotherOne) {
  constexpr int kThreads = 6, kRounds = 2000;
  const char rooms[3] = {};
  RoomLock lock;
  std::atomic<int> inside[3] = {};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < kRounds; ++round) {
        const int room = (t + round) % 3;
        const InRoom in(&lock, &rooms[room]);
        ++inside[room];
        for (int other = 0; other < 3; ++other) CHECK(other == room || inside[other] == 0);
        --inside[room];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Two threads that are in one room at a time: each waits until the other one is there, too.
TEST(ARoomIsShared) {
  RoomLock lock;
  std::atomic<int> inside{0};
  const auto meet = [&] {
    const InRoom in(&lock, &lock);
    ++inside;
    while (inside < 2) std::this_thread::yield();
  };
  std::thread other(meet);
  meet();
  other.join();
  CHECK_EQ(inside.load(), 2);
}

}  // namespace
}  // namespace workbench
