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
using Objects = ObjectPool<Counted>;

std::unique_ptr<Counted> TakeOne(Objects* pool) {
  std::unique_ptr<Counted> one = pool->Take();
  return one != nullptr ? std::move(one) : std::make_unique<Counted>();
}

void UseMany(Objects* pool, int at_one_time, int times) {
  for (int i = 0; i < times; ++i) {
    std::vector<std::unique_ptr<Counted>> used;
    for (int j = 0; j < at_one_time; ++j) used.push_back(TakeOne(pool));
    for (auto& each : used) pool->Return(std::move(each));
  }
}

TEST(AnObjectIsUsedAgain) {
  Objects pool;
  std::unique_ptr<Counted> first = TakeOne(&pool);
  Counted* const address = first.get();
  pool.Return(std::move(first));
  CHECK(pool.Take().get() == address);
}

TEST(WhatOnlyAPeakNeededGoes) {
  Objects pool;
  UseMany(&pool, 64, 1);
  CHECK_EQ(Counted::alive, 64);
  UseMany(&pool, 2, 2 * Objects::kPeriod);
  CHECK_EQ(Counted::alive, 2);
  CHECK_EQ(pool.idle(), 2u);
}

TEST(WhatIsNeededEachTimeStays) {
  Objects pool;
  UseMany(&pool, 16, 1);
  const int made = Counted::alive;
  UseMany(&pool, 16, Objects::kPeriod);
  CHECK_EQ(Counted::alive, made);
}

TEST(WhatIsTakenOverAPeriodCounts) {
  Objects pool;
  std::vector<std::unique_ptr<Counted>> held;
  for (int i = 0; i < 8; ++i) held.push_back(TakeOne(&pool));
  UseMany(&pool, 1, 3 * Objects::kPeriod);
  for (auto& each : held) pool.Return(std::move(each));
  held.clear();
  CHECK_EQ(pool.idle(), 9u);
  UseMany(&pool, 1, 3 * Objects::kPeriod);
  CHECK_EQ(pool.idle(), 1u);
}

TEST(AnyThreadMayTakeAndReturn) {
  {
    Objects pool;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&pool] { UseMany(&pool, 3, 5000); });
    for (std::thread& thread : threads) thread.join();
    CHECK(pool.idle() <= 12);
    CHECK_EQ(Counted::alive, int(pool.idle()));
  }
  CHECK_EQ(Counted::alive, 0);
}

}  // namespace
}  // namespace workbench
