// Many threads, random timeouts, cancels, owners and ends: each item once, each callback once.

#include <atomic>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "staging/buffer/stage_buffer.h"
#include "test/staging/buffer/calls.h"
#include "test/support/check.h"

namespace workbench {
namespace {

using namespace test;  // NOLINT

// A set of values that threads add to; a value may come once.
class Values {
 public:
  void Add(int value) {
    std::lock_guard<std::mutex> lock(mu_);
    CHECK(values_.insert(value).second);
  }
  const std::set<int>& get() const { return values_; }

 private:
  std::mutex mu_;
  std::set<int> values_;
};

// Ends now and then the call of another thread, before, while or after it waits.
void MaybeCancel(Buffer& buffer, const CallPtr& call, std::mt19937* random) {
  if ((*random)() % 4 == 0) buffer.CancelCall(call->ticket);
}

// Puts `count` items; notes those that were accepted.
void Produce(Buffer& buffer, int thread, int count, Values* accepted) {
  std::mt19937 random(thread);
  for (int i = 0; i < count; ++i) {
    const int value = thread * 1000000 + i;
    auto call = std::make_shared<Call>();
    if (random() % 16 == 0) buffer.CancelCall(call->ticket);
    Put(buffer, value, static_cast<int64_t>(random() % 2), 1, thread, call);
    MaybeCancel(buffer, call, &random);
    Code code = call->Wait();
    CHECK_EQ(call->ends, 1);
    if (code == Code::kCancelled) continue;
    accepted->Add(value);
    while (code != Code::kOk) {
      CHECK(code == Code::kDeadlineExceeded || code == Code::kCancelled);
      auto flush = Flush(buffer, static_cast<int64_t>(random() % 3), 1, thread);
      MaybeCancel(buffer, flush, &random);
      code = flush->Wait();
      CHECK_EQ(flush->ends, 1);
    }
  }
}

// Takes until the end of the epoch.
void Consume(Buffer& buffer, int thread, Values* taken) {
  std::mt19937 random(1000 + thread);
  while (true) {
    auto call = Take(buffer);
    MaybeCancel(buffer, call, &random);
    const Code code = call->Wait();
    CHECK_EQ(call->ends, 1);
    if (code == Code::kOutOfRange) return;
    if (code == Code::kOk) taken->Add(call->value);
  }
}

TEST(EachAcceptedItemIsTakenOnce) {
  for (const int64_t capacity : {1, 3}) {
    auto buffer = Open(capacity);
    buffer->Drain(true);
    Values accepted, taken;
    std::vector<std::thread> producers, consumers;
    for (int i = 0; i < 4; ++i) {
      producers.emplace_back([&, i] { Produce(*buffer, i, 5000, &accepted); });
      consumers.emplace_back([&, i] { Consume(*buffer, i, &taken); });
    }
    for (std::thread& thread : producers) thread.join();
    buffer->Close(1);
    for (std::thread& thread : consumers) thread.join();
    CHECK(accepted.get().size() > 5000);
    CHECK(accepted.get() == taken.get());

    int64_t puts = 0, takes = 0;
    for (const BufferEvent& event : buffer->Drain(false)) {
      CHECK(event.start_ns <= event.end_ns);
      CHECK(0 <= event.size && event.size <= capacity);
      CHECK_EQ(event.item, event.kind == BufferEvent::kPut ? puts++ : takes++);
      CHECK_EQ(event.size, puts - takes);
    }
    CHECK_EQ(takes, static_cast<int64_t>(taken.get().size()));
  }
}

TEST(NoItemOfAnEarlierOwnerAndEachCallbackOnce) {
  auto buffer = Buffer::Create("clicks", 2);
  std::atomic<int> owner{0};
  std::atomic<bool> stop{false};
  Values taken;
  const auto produce = [&](int thread) {
    std::mt19937 random(thread);
    for (int i = 0; !stop; ++i) {
      const int token = owner;
      if (token == 0) continue;
      // The value says whose it is.
      auto call = Put(*buffer, token * 1000000 + thread * 100000 + i % 100000, random() % 2, token,
                      thread);
      MaybeCancel(*buffer, call, &random);
      call->Wait();
      CHECK_EQ(call->ends, 1);
      if (random() % 3 == 0) CHECK(Flush(*buffer, 1, token, thread)->Wait() != Code::kOutOfRange);
    }
  };
  const auto consume = [&](int thread) {
    std::mt19937 random(100 + thread);
    while (!stop) {
      const int least = owner;  // The owner whose resume is over: no earlier one's item may come.
      auto call = Take(*buffer, 1);
      MaybeCancel(*buffer, call, &random);
      if (call->Wait() == Code::kOk) {
        CHECK(call->value / 1000000 >= least);
        taken.Add(call->value);
      }
      CHECK_EQ(call->ends, 1);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(produce, i);
  for (int i = 0; i < 3; ++i) threads.emplace_back(consume, i);
  std::mt19937 random(5);
  for (int token = 1; token <= 2000; ++token) {
    buffer->Resume(token);
    owner = token;
    std::this_thread::yield();
    switch (random() % 4) {
      case 0: buffer->Close(token); break;
      case 1: buffer->Cancel(token, 13, "bad batch"); break;
      case 2: buffer->Cancel(token - 1, 1, "late"); break;
      default: buffer->Resume(token); break;
    }
    Put(*buffer, token * 1000000 + 999999, 0, token, 9);
    buffer->Size();
  }
  stop = true;
  buffer->Cancel(2000, 1, "stopped");
  for (std::thread& thread : threads) thread.join();
}

TEST(DestroyedWhileManyWait) {
  for (int round = 0; round < 50; ++round) {
    auto buffer = Open(1);
    std::vector<CallPtr> calls, flushes;
    std::mt19937 random(round);
    Put(*buffer, 1);
    for (int i = 0; i < 8; ++i) {
      calls.push_back(Put(*buffer, i, random() % 2 ? kLong : 1));
      flushes.push_back(Flush(*buffer, random() % 2 ? kLong : 1));
    }
    auto other = Open(1);
    for (int i = 0; i < 8; ++i) calls.push_back(Take(*other));
    // Deadlines and cancelled steps race with the end; they hold the buffers weakly, as steps do.
    std::weak_ptr<Buffer> weak = buffer, weak_other = other;
    std::thread canceller([&] {
      for (const CallPtr& call : calls) {
        if (auto alive = weak.lock()) alive->CancelCall(call->ticket);
        if (auto alive = weak_other.lock()) alive->CancelCall(call->ticket);
      }
    });
    if (round % 2) buffer->Shutdown();
    buffer.reset();
    other.reset();
    canceller.join();
    for (const CallPtr& call : calls) {
      CHECK(call->Wait() != Code::kOk);
      CHECK_EQ(call->ends, 1);
    }
    // A flush is OK when every put that it waited for was cancelled with its step.
    for (const CallPtr& call : flushes) {
      call->Wait();
      CHECK_EQ(call->ends, 1);
    }
  }
}

}  // namespace
}  // namespace workbench
