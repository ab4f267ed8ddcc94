#include "executor/server/pending_graphs.h"

#include <chrono>
#include <memory>

#include "test/support/check.h"

namespace workbench {
namespace {

using Pending = PendingGraphs<int>;
using std::chrono::seconds;

TEST(AGraphIsTakenOnce) {
  Pending pending{seconds(10)};
  const int64_t first = pending.Put(std::make_unique<int>(1));
  const int64_t second = pending.Put(std::make_unique<int>(2));
  CHECK(first != second);
  const std::unique_ptr<int> taken = pending.Take(second);
  CHECK(taken != nullptr && *taken == 2);
  CHECK(pending.Take(second) == nullptr);
  CHECK(*pending.Take(first) == 1);
  CHECK(pending.Take(77) == nullptr);
}

TEST(WhatNobodyTookGoesAway) {
  Pending pending{seconds(10)};
  const Pending::Clock::time_point start{};
  const int64_t old = pending.Put(std::make_unique<int>(1), start);
  const int64_t young = pending.Put(std::make_unique<int>(2), start + seconds(5));
  const int64_t last = pending.Put(std::make_unique<int>(3), start + seconds(11));
  CHECK(pending.Take(old) == nullptr);
  CHECK(*pending.Take(young) == 2);
  CHECK(*pending.Take(last) == 3);
}

}  // namespace
}  // namespace workbench
