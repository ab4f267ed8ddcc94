#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "executor/scheduling/workers.h"
#include "test/support/check.h"
#include "test/support/latch.h"
#include "test/support/pool.h"

namespace workbench {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kRounds = 150;
#else
constexpr int kRounds = 600;
#endif

using test::Pool;

constexpr std::chrono::microseconds kSpin{5};

struct Shape {
  int most;
  bool has_caller;
  int items;     // In a tree: each is made ready by another.
  int branches;  // Of the tree; 1 is a chain.
  int one_in;    // One item in this many ends on a thread that is none of the workers; 0: none.
  int64_t most_cost;
  size_t most_items;
  Workers<int>::Settings settings;
};

// A step as executors run one. It is gone once it has ended: a sanitizer sees who comes late.
class FakeStep {
 public:
  FakeStep(const Shape& shape, Pool* pool, Pool* others, std::vector<std::atomic<int>>* runs,
           std::atomic<int>* coming)
      : shape_(shape),
        pool_(pool),
        others_(others),
        runs_(runs),
        coming_(coming),
        queue_(std::make_shared<Queue>(shape.most, shape.has_caller, shape.settings)) {}

  void Run() {
    const Queue::Ready root{0, 0, 0};
    Send(queue_->Add(&root, &root + 1, /*left=*/0));
    Work(/*as_caller=*/true);
    CHECK_EQ(inside_.load(), 0);
    delete this;
  }

  // The step is deleted before `done` is called.
  void RunAsync(std::function<void()> done) {
    done_ = std::move(done);
    const Queue::Ready root{0, 0, 0};
    Send(queue_->Add(&root, &root + 1, Queue::kNotAWorker));
  }

 private:
  using Queue = Workers<int>;

  void Send(int workers) {
    for (; workers > 0; --workers) {
      coming_->fetch_add(1);
      pool_->Run([this, queue = queue_, coming = coming_] {
        if (queue->Enter()) Work(/*as_caller=*/false);
        coming->fetch_sub(1);
      });
    }
  }

  void Work(bool as_caller) {
    const std::shared_ptr<Queue> queue = queue_;
    std::vector<int> taken;
    while (true) {
      taken.clear();
      if (as_caller) {
        if (!queue->TakeAsCaller(shape_.most_cost, shape_.most_items, &taken)) return;
      } else {
        const Queue::Took took = queue->Take(shape_.most_cost, shape_.most_items, &taken);
        if (took == Queue::Took::kNothing) return;
        if (took == Queue::Took::kLast) break;
      }
      CHECK(!taken.empty() && taken.size() <= shape_.most_items);
      CHECK(inside_.fetch_add(1) < shape_.most);
      bool ended = false;
      for (size_t i = 0; i < taken.size(); ++i) {
        ended = RunItem(taken[i], /*left=*/taken.size() - i - 1);
        CHECK(!ended || i + 1 == taken.size());
      }
      inside_.fetch_sub(1);
      if (ended) queue->End();
    }
    Finish();
  }

  // True: nothing is under way any more.
  bool RunItem(int item, int64_t left) {
    CHECK_EQ((*runs_)[item].fetch_add(1), 0);
    if (shape_.one_in == 0 || item % shape_.one_in != 0) return EndItem(item, left);
    others_->Run([this, item] {
      const std::shared_ptr<Queue> queue = queue_;
      if (EndItem(item, Queue::kNotAWorker) && queue->End()) Finish();
    });
    return false;
  }

  bool EndItem(int item, int64_t left) {
    std::vector<Queue::Ready> ready;
    for (int branch = 1; branch <= shape_.branches; ++branch) {
      const int64_t next = int64_t{item} * shape_.branches + branch;
      if (next < shape_.items) ready.push_back({next % 7, next % 5, int(next)});
    }
    outstanding_.fetch_add(int(ready.size()));
    if (!ready.empty()) Send(queue_->Add(ready.data(), ready.data() + ready.size(), left));
    return outstanding_.fetch_sub(1) == 1;
  }

  void Finish() {
    CHECK(!shape_.has_caller);
    const std::function<void()> done = std::move(done_);
    CHECK(done != nullptr);
    delete this;
    done();
  }

  const Shape shape_;
  Pool* const pool_;
  Pool* const others_;
  std::vector<std::atomic<int>>* const runs_;
  std::atomic<int>* const coming_;
  const std::shared_ptr<Queue> queue_;
  std::function<void()> done_;
  std::atomic<int> outstanding_{1};
  std::atomic<int> inside_{0};
};

void RunSteps(const Shape& shape, int rounds, Pool* pool, Pool* others) {
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::atomic<int>> runs(shape.items);
    std::atomic<int> coming{0};
    auto* step = new FakeStep(shape, pool, others, &runs, &coming);
    if (shape.has_caller) {
      step->Run();
    } else {
      test::Latch ended(1);
      step->RunAsync([&ended] { ended.CountDown(); });
      ended.Wait();
    }
    for (const std::atomic<int>& each : runs) CHECK_EQ(each.load(), 1);
    while (coming.load() > 0) std::this_thread::yield();  // Those that are refused.
  }
}

std::vector<Shape> Shapes() {
  std::vector<Shape> shapes;
  for (const bool has_caller : {true, false}) {
    for (const int most : {1, 2, 6}) {
      for (const int one_in : {0, 1, 3}) {
        shapes.push_back({most, has_caller, 60, 1, one_in, 0, 1, {}});
        shapes.push_back({most, has_caller, 150, 2, one_in, 4, 3, {/*min_shared_cost=*/6, {}}});
        shapes.push_back({most, has_caller, 150, 12, one_in, INT64_MAX, 1, {0, kSpin}});
        shapes.push_back({most, has_caller, 150, 3, one_in, 4, 2, {/*min_shared_cost=*/20, kSpin}});
      }
    }
  }
  return shapes;
}

TEST(NoItemIsLostOrRunTwiceAndNeverTooManyWork) {
  Pool pool(8), others(4);
  for (const Shape& shape : Shapes()) RunSteps(shape, kRounds / 10, &pool, &others);
}

// Workers of ended steps come while later ones run.
TEST(ManyStepsAtOnceOnOnePool) {
  Pool pool(4), others(2);
  std::vector<std::thread> clients;
  for (int client = 0; client < 6; ++client) {
    clients.emplace_back([&, client] {
      const std::vector<Shape> shapes = Shapes();
      std::mt19937 random(client);
      for (int i = 0; i < kRounds / 3; ++i) {
        RunSteps(shapes[random() % shapes.size()], 1, &pool, &others);
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

// The shortest steps meet the end most often.
TEST(StepsOfOneItem) {
  Pool pool(4), others(2);
  for (const bool has_caller : {true, false}) {
    for (const int one_in : {0, 1}) {
      RunSteps({2, has_caller, 1, 1, one_in, 0, 1, {}}, kRounds * 4, &pool, &others);
      RunSteps({3, has_caller, 4, 3, one_in, 0, 1, {0, kSpin}}, kRounds * 4, &pool, &others);
    }
  }
}

}  // namespace
}  // namespace workbench
