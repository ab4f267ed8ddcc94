#include "executor/scheduling/workers.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <thread>
#include <tuple>
#include <vector>

#include "test/support/check.h"
#include "test/support/latch.h"

namespace workbench {
namespace {

using Queue = Workers<int>;
using Items = std::vector<int>;
constexpr int64_t kNoLimit = INT64_MAX;

int Add(Queue* queue, const std::vector<Queue::Ready>& ready, int64_t left = Queue::kNotAWorker) {
  return queue->Add(ready.data(), ready.data() + ready.size(), left);
}

// One worker that has entered, and a queue that has no caller.
struct OneInside {
  explicit OneInside(int most = 1) : queue(most, /*has_caller=*/false) { queue.Join(); }

  Items Take(int64_t most_cost = kNoLimit, size_t most_items = 1) {
    Items taken;
    CHECK(queue.Take(most_cost, most_items, &taken) == Queue::Took::kItems);
    return taken;
  }
  Queue queue;
};

TEST(TheHighestPriorityFirstAndOfEqualOnesTheEarliest) {
  OneInside one;
  CHECK_EQ(Add(&one.queue, {{1, 0, 10}, {5, 0, 11}, {1, 0, 12}, {5, 0, 13}}), 0);
  CHECK_EQ(Add(&one.queue, {{5, 0, 14}, {-3, 0, 15}, {9, 0, 16}}), 0);
  for (int expected : {16, 11, 13, 14, 10, 12, 15}) CHECK(one.Take() == Items({expected}));
  Items taken;
  CHECK(one.queue.Take(kNoLimit, 1, &taken) == Queue::Took::kNothing);
  CHECK(taken.empty());
}

TEST(KnowsWhetherSomethingGoesBefore) {
  OneInside one;
  CHECK(!one.queue.HasHigher(-100));
  Add(&one.queue, {{4, 0, 1}, {7, 0, 2}});
  CHECK(one.queue.HasHigher(6));
  CHECK(!one.queue.HasHigher(7));
}

TEST(ABatchKeepsToItsCost) {
  OneInside one;
  Add(&one.queue, {{0, 4, 1}, {0, 6, 2}, {0, 1, 3}, {0, 50, 4}, {0, 0, 5}, {0, 0, 6}});
  CHECK(one.Take(10, 100) == Items({1, 2}));
  CHECK(one.Take(10, 100) == Items({3}));
  CHECK(one.Take(10, 100) == Items({4}));  // The first goes whatever it costs, and alone.
  CHECK(one.Take(10, 100) == Items({5, 6}));
}

TEST(ABatchKeepsToItsCount) {
  OneInside one;
  Add(&one.queue, {{0, 1, 1}, {0, 1, 2}, {0, 1, 3}, {0, 1, 4}, {0, 1, 5}});
  CHECK(one.Take(1000, 3) == Items({1, 2, 3}));
  CHECK(one.Take(1000, 3) == Items({4, 5}));
}

TEST(RandomBatchesAreThoseOfASortedList) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    OneInside one;
    std::vector<std::tuple<int64_t, int, int64_t>> sorted;  // Of -priority, item and cost.
    int next = 0;
    while (next < 60 || !sorted.empty()) {
      if (next < 60 && random() % 2 == 0) {
        std::vector<Queue::Ready> ready;
        for (int i = random() % 8; i >= 0; --i) {
          ready.push_back({int64_t(random() % 4), int64_t(random() % 6), next++});
          sorted.emplace_back(-ready.back().priority, ready.back().item, ready.back().cost);
        }
        Add(&one.queue, ready);
        std::sort(sorted.begin(), sorted.end());
      }
      if (sorted.empty()) continue;
      const int64_t most_cost = random() % 12;
      const size_t most_items = 1 + random() % 5;
      Items expected;
      int64_t cost = 0;
      for (const auto& [priority, item, item_cost] : sorted) {
        cost += item_cost;
        if (!expected.empty() && (cost > most_cost || expected.size() == most_items)) break;
        expected.push_back(item);
      }
      sorted.erase(sorted.begin(), sorted.begin() + expected.size());
      CHECK(one.Take(most_cost, most_items) == expected);
    }
  }
}

TEST(SendsAsManyAsThereIsWorkForAndNoMore) {
  Queue queue(4, /*has_caller=*/false);
  CHECK_EQ(Add(&queue, {{0, 0, 1}, {0, 0, 2}}), 2);
  CHECK_EQ(Add(&queue, {{0, 0, 3}}), 1);
  CHECK_EQ(Add(&queue, std::vector<Queue::Ready>(50, {0, 0, 4})), 1);
  CHECK_EQ(Add(&queue, std::vector<Queue::Ready>(50, {0, 0, 5})), 0);  // Four are on the way.
  CHECK(queue.Enter());
  Items taken;
  CHECK(queue.Take(kNoLimit, 1000, &taken) == Queue::Took::kItems);
  CHECK_EQ(taken.size(), 103u);
  // Of the four, three are still on the way; the one that is here goes on.
  CHECK_EQ(Add(&queue, {{0, 0, 6}}, /*left=*/0), 0);
  CHECK_EQ(Add(&queue, std::vector<Queue::Ready>(9, {0, 0, 7})), 0);
}

TEST(AnIdleWorkerTakesTheFirstItself) {
  Queue queue(3, /*has_caller=*/false);
  queue.Join();
  CHECK_EQ(Add(&queue, {{0, 0, 1}}, /*left=*/0), 0);
  CHECK_EQ(Add(&queue, {{0, 0, 2}}, /*left=*/0), 1);
  CHECK_EQ(Add(&queue, {{0, 0, 3}, {0, 0, 4}}), 1);  // Three work: that is the most.
}

TEST(WhatIsNotWorthHelpIsLeftToTheWorkerWhoAddedIt) {
  Queue queue(2, /*has_caller=*/false, {/*min_shared_cost=*/100});
  queue.Join();
  CHECK_EQ(Add(&queue, {{0, 40, 1}}, /*left=*/50), 0);
  CHECK_EQ(Add(&queue, {{0, 9, 2}}, /*left=*/50), 0);
  CHECK_EQ(Add(&queue, {{0, 1, 3}}, /*left=*/50), 1);  // Now it is, with what waits already.
  Items taken;
  queue.Take(kNoLimit, 3, &taken);
  CHECK(taken == Items({1, 2, 3}));
  CHECK(queue.Enter());
  CHECK(queue.Take(kNoLimit, 1, &taken) == Queue::Took::kNothing);
  // What was taken does not count any more.
  CHECK_EQ(Add(&queue, {{0, 40, 4}}, /*left=*/50), 0);
  CHECK_EQ(Add(&queue, {}, Queue::kNotAWorker), 1);  // Nobody else would do it.
}

TEST(WhoLeavesMakesRoomForAnother) {
  OneInside one;
  CHECK_EQ(Add(&one.queue, {{0, 0, 1}}), 0);
  one.Take();
  Items taken;
  CHECK(one.queue.Take(kNoLimit, 1, &taken) == Queue::Took::kNothing);
  CHECK_EQ(Add(&one.queue, {{0, 0, 2}}), 1);
  CHECK(one.queue.Enter());
  CHECK(one.Take() == Items({2}));
  CHECK(one.queue.Take(kNoLimit, 1, &taken) == Queue::Took::kNothing);
  CHECK_EQ(Add(&one.queue, {{0, 0, 3}}), 1);
}

TEST(AfterTheEndNobodyEnters) {
  Queue queue(3, /*has_caller=*/false);
  CHECK_EQ(Add(&queue, {{0, 0, 1}, {0, 0, 2}, {0, 0, 3}}), 3);
  CHECK(queue.Enter());
  Items taken;
  CHECK(queue.Take(kNoLimit, 3, &taken) == Queue::Took::kItems);
  CHECK(!queue.End());  // The caller itself is inside.
  CHECK(!queue.Enter());
  CHECK(queue.Take(kNoLimit, 3, &taken) == Queue::Took::kLast);
  CHECK(!queue.Enter());
}

TEST(TheLastToLeaveIsToldOnce) {
  Queue queue(2, /*has_caller=*/false);
  Add(&queue, {{0, 0, 1}, {0, 0, 2}});
  CHECK(queue.Enter() && queue.Enter());
  Items taken;
  queue.Take(kNoLimit, 2, &taken);
  CHECK(!queue.End());
  CHECK(queue.Take(kNoLimit, 2, &taken) == Queue::Took::kNothing);
  CHECK(queue.Take(kNoLimit, 2, &taken) == Queue::Took::kLast);
}

TEST(WhoEndsAnEmptyStepIsTheLast) {
  Queue queue(2, /*has_caller=*/false);
  CHECK(queue.End());
  Queue with_caller(2, /*has_caller=*/true);
  CHECK(!with_caller.End());  // The caller sees to the rest.
  Items taken;
  CHECK(!with_caller.TakeAsCaller(kNoLimit, 1, &taken));
  CHECK(taken.empty());
}

TEST(HomeDoesNotLookForWorkAfterTheEnd) {
  Queue queue(2, /*has_caller=*/true, {0, std::chrono::hours(1)});
  queue.End();
  Items taken;
  CHECK(!queue.TakeAsCaller(kNoLimit, 1, &taken));
}

TEST(HomeCountsAsOneThatWorks) {
  Queue queue(1, /*has_caller=*/true);
  CHECK_EQ(Add(&queue, {{0, 0, 1}, {0, 0, 2}}), 0);  // The caller is not waiting, and alone.
  Items taken;
  CHECK(queue.TakeAsCaller(kNoLimit, 1, &taken) && queue.TakeAsCaller(kNoLimit, 1, &taken));
  CHECK(taken == Items({1, 2}));
}

TEST(HomeWakesForWork) {
  for (int round = 0; round < 400; ++round) {
    // The caller may sleep, or still look.
    Queue queue(1, /*has_caller=*/true, {0, std::chrono::microseconds(round % 2 ? 50 : 0)});
    Items taken;
    std::thread caller([&] {
      while (queue.TakeAsCaller(kNoLimit, 1, &taken)) {
      }
    });
    // Whether the caller works or waits: nobody is sent in its place.
    CHECK_EQ(Add(&queue, {{0, 0, 1}, {0, 0, 2}}), 0);
    CHECK_EQ(Add(&queue, {{0, 0, 3}}), 0);
    queue.End();
    caller.join();
    CHECK(taken == Items({1, 2, 3}));
  }
}

TEST(HomeWakesThoughWhoWasSentHasNotCome) {
  Queue queue(2, /*has_caller=*/true);
  // One is sent, and stays behind others in its pool for ever.
  CHECK_EQ(Add(&queue, {{0, 0, 1}}), 1);
  Items taken;
  CHECK(queue.TakeAsCaller(kNoLimit, 1, &taken));
  std::atomic<int> seen{0};
  std::thread caller([&] {
    Items more;
    while (queue.TakeAsCaller(kNoLimit, 1, &more)) seen = more.back();
  });
  // Nobody else is there: there is room for help once the caller waits.
  while (!queue.HasSpareWorker()) std::this_thread::yield();
  Add(&queue, {{0, 0, 2}});
  for (int i = 0; i < 5000 && seen != 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK_EQ(seen.load(), 2);
  queue.End();
  caller.join();
}

TEST(AWorkerWhoComesTooLateLeavesAgain) {
  Queue queue(1, /*has_caller=*/false);
  CHECK_EQ(Add(&queue, {{0, 0, 1}}), 1);
  queue.Join();  // Somebody else took the place meanwhile.
  CHECK(!queue.Enter());
}

TEST(HomeReturnsOnlyWhenNobodyIsInside) {
  for (int round = 0; round < 20; ++round) {
    Queue queue(3, /*has_caller=*/true);
    CHECK_EQ(Add(&queue, {{0, 0, 1}, {0, 0, 2}, {0, 0, 3}}, /*left=*/0), 2);
    CHECK(queue.Enter() && queue.Enter());
    std::atomic<int> left{0};
    test::Latch took(1);
    std::thread caller([&] {
      Items taken;
      CHECK(queue.TakeAsCaller(kNoLimit, 3, &taken));
      took.CountDown();
      CHECK(!queue.TakeAsCaller(kNoLimit, 3, &taken));
      CHECK_EQ(left.load(), 2);
    });
    took.Wait();
    CHECK(!queue.End());
    Items taken;
    for (int worker = 0; worker < 2; ++worker) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // The caller may err meanwhile.
      ++left;
      CHECK(queue.Take(kNoLimit, 1, &taken) == Queue::Took::kNothing);
    }
    caller.join();
  }
}

}  // namespace
}  // namespace workbench
