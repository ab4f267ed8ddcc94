#include "executor/memory/object_pool.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "test/support/check.h"

namespace workbench {
namespace {

struct Counted {
  static inline std::atomic<int> alive{0};
  Counted() { ++alive; }
  ~Counted() { --alive; }
};
using Objects = Kept<Counted>;

std::unique_ptr<Counted> TakeOne(Objects* kept) {
  std::unique_ptr<Counted> one = kept->Take();
  return one != nullptr ? std::move(one) : std::make_unique<Counted>();
}

void UseMany(Objects* kept, int at_one_time, int times) {
  for (int i = 0; i < times; ++i) {
    std::vector<std::unique_ptr<Counted>> used;
    for (int j = 0; j < at_one_time; ++j) used.push_back(TakeOne(kept));
    for (auto& each : used) kept->Give(std::move(each));
  }
}

TEST(AnObjectIsUsedAgain) {
  Objects kept;
  std::unique_ptr<Counted> first = TakeOne(&kept);
  Counted* const address = first.get();
  kept.Give(std::move(first));
  CHECK(kept.Take().get() == address);
}

TEST(WhatOnlyAPeakNeededGoes) {
  Objects kept;
  UseMany(&kept, 64, 1);
  CHECK_EQ(Counted::alive, 64);
  UseMany(&kept, 2, 2 * Objects::kPeriod);
  CHECK_EQ(Counted::alive, 2);
  CHECK_EQ(kept.idle(), 2u);
}

TEST(WhatIsNeededEachTimeStays) {
  Objects kept;
  UseMany(&kept, 16, 1);
  const int made = Counted::alive;
  UseMany(&kept, 16, Objects::kPeriod);
  CHECK_EQ(Counted::alive, made);
}

TEST(WhatIsTakenOverAPeriodCounts) {
  Objects kept;
  std::vector<std::unique_ptr<Counted>> held;
  for (int i = 0; i < 8; ++i) held.push_back(TakeOne(&kept));
  UseMany(&kept, 1, 3 * Objects::kPeriod);
  for (auto& each : held) kept.Give(std::move(each));
  held.clear();
  CHECK_EQ(kept.idle(), 9u);
  UseMany(&kept, 1, 3 * Objects::kPeriod);
  CHECK_EQ(kept.idle(), 1u);
}

TEST(AnyThreadMayTakeAndGive) {
  {
    Objects kept;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&kept] { UseMany(&kept, 3, 5000); });
    for (std::thread& thread : threads) thread.join();
    CHECK(kept.idle() <= 12);
    CHECK_EQ(Counted::alive, int(kept.idle()));
  }
  CHECK_EQ(Counted::alive, 0);
}

}  // namespace
}  // namespace workbench
