// The concurrent part of a step, many at once: what is ready, who runs it, admission, values, the
// end.

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "test/executor/step/fake_step.h"
#include "test/support/check.h"
#include "test/support/latch.h"
#include "test/support/pool.h"

namespace workbench {
namespace {

using test::Cancellation;
using test::FakeGraph;
using test::FakeStep;
using test::Pool;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kSteps = 120;
#else
constexpr int kSteps = 600;
#endif
constexpr int kClients = 8;

struct Ends {
  std::atomic<int> well{0};
  std::atomic<int> cancelled{0};
};

// Steps of one client, some of which another thread cancels while they run.
void RunSteps(const FakeStep::Place& place, bool has_caller, unsigned seed, Pool* cancellers,
              Ends* ends) {
  std::mt19937 random(seed);
  for (int i = 0; i < kSteps; ++i) {
    const auto cancellation = std::make_shared<Cancellation>();
    const bool cancel = random() % 4 == 0;
    if (cancel) cancellers->Run([cancellation] { cancellation->Cancel(); });
    bool ok = false;
    if (has_caller) {
      ok = FakeStep::Run(place, cancellation.get());
    } else {
      test::Latch ended(1);
      FakeStep::RunAsync(place, cancellation.get(), [&ok, &ended](bool well) {
        ok = well;
        ended.CountDown();
      });
      ended.Wait();
    }
    CHECK(ok || cancel);
    ++(ok ? ends->well : ends->cancelled);
  }
}

// Half of the clients call their steps and wait for them; all steps are of one executor.
void RunClients(int32_t nodes, bool one_worker, unsigned seed) {
  const FakeGraph graph(nodes, seed);
  Ends ends;
  {
    Pool pool(4), others(2), cancellers(1);
    const FakeStep::Place place{&graph, &pool, &others, one_worker};
    std::vector<std::thread> clients;
    for (int client = 0; client < kClients; ++client) {
      clients.emplace_back(RunSteps, place, client % 2 == 0, seed + client, &cancellers, &ends);
    }
    for (std::thread& client : clients) client.join();
  }
  CHECK_EQ(ends.well + ends.cancelled, kClients * kSteps);
  CHECK(ends.well > 0);
  CHECK(nodes == 1 || ends.cancelled > 0);
}

TEST(ManyClientsByCost) {
  for (const unsigned seed : {1, 2, 3}) RunClients(/*nodes=*/60, /*one_worker=*/false, seed);
}

TEST(ManyClientsInline) {
  for (const unsigned seed : {4, 5}) RunClients(/*nodes=*/60, /*one_worker=*/true, seed);
}

// The shortest steps meet the end, and the next step, most often.
TEST(StepsOfFewNodes) {
  for (const bool one_worker : {true, false}) {
    RunClients(/*nodes=*/1, one_worker, /*seed=*/6);
    RunClients(/*nodes=*/3, one_worker, /*seed=*/8);
  }
}

}  // namespace
}  // namespace workbench
