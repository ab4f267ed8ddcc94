#include "executor/memory/block_cache.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "test/support/check.h"

namespace workbench {
namespace {

BlockCache& Cache() { return BlockCache::Get(); }

template <typename Work>
void OnThread(const Work& work) {
  std::thread thread(work);
  thread.join();
}

// A block full of its owner's bytes.
struct Block {
  unsigned char* memory;
  size_t bytes;
  unsigned char owner;

  static Block New(size_t bytes, unsigned char owner) {
    auto* memory = static_cast<unsigned char*>(Cache().Allocate(bytes));
    CHECK(memory != nullptr);
    CHECK_EQ(reinterpret_cast<uintptr_t>(memory) % BlockCache::kAlignment, 0u);
    std::memset(memory, owner, bytes);
    return {memory, bytes, owner};
  }
  void Free() const {
    // All bytes are as the first, and that is the owner's: nobody else had it meanwhile.
    CHECK(bytes == 0 || memory[0] == owner);
    CHECK(bytes < 2 || std::memcmp(memory, memory + 1, bytes - 1) == 0);
    Cache().Free(memory);
  }
};

// What lies in common after the threads that had blocks have ended.
void CheckNothingIsKept() {
  Cache().Trim();
  CHECK_EQ(Cache().common_bytes(), 0);
}

void CheckClassOf(size_t bytes) {
  const int size_class = BlockCache::ClassOf(bytes);
  CHECK(size_class >= 0 && size_class < BlockCache::kClasses);
  const size_t holds = BlockCache::BytesOf(size_class);
  CHECK(holds >= bytes);
  CHECK_EQ(holds % BlockCache::kAlignment, 0u);
  if (size_class > 0) CHECK(BlockCache::BytesOf(size_class - 1) < bytes);  // It is the least.
  if (bytes > 1024) CHECK((holds - bytes) * 4 <= bytes);
  if (bytes > 0 && bytes <= 1024) CHECK(holds - bytes < 64);
}

TEST(ClassesHoldEverySizeWithLittleWaste) {
  for (size_t bytes = 0; bytes <= 1 << 17; ++bytes) CheckClassOf(bytes);
  for (int size_class = 0; size_class < BlockCache::kClasses; ++size_class) {
    const size_t holds = BlockCache::BytesOf(size_class);
    CHECK_EQ(BlockCache::ClassOf(holds), size_class);
    CheckClassOf(holds - 1);
    CheckClassOf(holds);
    if (size_class + 1 < BlockCache::kClasses) CheckClassOf(holds + 1);
  }
  CHECK_EQ(BlockCache::BytesOf(BlockCache::kClasses - 1), BlockCache::kLargest);
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) CheckClassOf(random() % (BlockCache::kLargest + 1));
}

TEST(BlocksAreAlignedAndAsLargeAsAsked) {
  OnThread([] {
    std::vector<Block> blocks;
    unsigned char owner = 0;
    for (size_t bytes = 0; bytes < 3000; bytes += 7) blocks.push_back(Block::New(bytes, ++owner));
    for (size_t bytes : {size_t{4096}, size_t{16384}, size_t{16385}, size_t{1} << 20,
                         (size_t{1} << 20) + 1, BlockCache::kLargest, BlockCache::kLargest + 1}) {
      blocks.push_back(Block::New(bytes, ++owner));
    }
    for (const Block& block : blocks) block.Free();
    // Again, from what is kept.
    for (const Block& block : blocks) Block::New(block.bytes, 1).Free();
  });
  CheckNothingIsKept();
}

TEST(AFreedBlockIsTheNextOfItsSize) {
  OnThread([] {
    for (size_t bytes : {size_t{100}, size_t{16384}, size_t{16385}, size_t{5} << 20}) {
      void* const first = Cache().Allocate(bytes);
      Cache().Free(first);
      void* const second = Cache().Allocate(bytes);
      CHECK(first == second);
      void* const third = Cache().Allocate(bytes);
      CHECK(third != second);
      Cache().Free(second);
      Cache().Free(third);
    }
  });
  CheckNothingIsKept();
}

TEST(NothingAndTooMuch) {
  Cache().Free(nullptr);
  CHECK(Cache().Allocate(SIZE_MAX) == nullptr);
  CHECK(Cache().Allocate(SIZE_MAX - 62) == nullptr);
  CHECK(Cache().Allocate(SIZE_MAX - 128) == nullptr);
  CHECK(Cache().Allocate(PTRDIFF_MAX) == nullptr);
}

TEST(TheLargestAreNotKept) {
  Cache().Free(Cache().Allocate(BlockCache::kLargest + 1));
  CHECK_EQ(Cache().common_bytes(), 0);
  Cache().Free(Cache().Allocate(BlockCache::kLargest));
  CHECK_EQ(Cache().common_bytes(), int64_t{BlockCache::kLargest});
  CheckNothingIsKept();
}

TEST(WhatIsKeptInCommonHasABound) {
  std::vector<void*> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(Cache().Allocate(BlockCache::kLargest));
  for (size_t i = 0; i < blocks.size(); ++i) {
    Cache().Free(blocks[i]);
    CHECK_EQ(Cache().common_bytes(),
             std::min(BlockCache::kMostBytes, int64_t(i + 1) * int64_t{BlockCache::kLargest}));
  }
  // There is no room for others either until one is taken.
  OnThread([] { Block::New(100'000, 1).Free(); });
  CHECK_EQ(Cache().common_bytes(), BlockCache::kMostBytes);
  void* const block = Cache().Allocate(BlockCache::kLargest);
  CHECK_EQ(Cache().common_bytes(), BlockCache::kMostBytes - int64_t{BlockCache::kLargest});
  OnThread([] { Block::New(100'000, 1).Free(); });
  CHECK(Cache().common_bytes() > BlockCache::kMostBytes - int64_t{BlockCache::kLargest});
  Cache().Free(block);
  CheckNothingIsKept();
}

TEST(AThreadKeepsFewAndTheRestIsInCommon) {
  constexpr size_t kBytes = 1024;
  constexpr int kBlocks = 200;
  OnThread([] {
    std::vector<void*> blocks;
    for (int i = 0; i < kBlocks; ++i) blocks.push_back(Cache().Allocate(kBytes));
    for (void* block : blocks) Cache().Free(block);
    CHECK_EQ(Cache().common_bytes(), int64_t{kBlocks * kBytes - (64 << 10)});
    // Both are there for whoever asks.
    std::vector<void*> again;
    for (int i = 0; i < kBlocks; ++i) again.push_back(Cache().Allocate(kBytes));
    CHECK_EQ(Cache().common_bytes(), 0);
    std::sort(blocks.begin(), blocks.end());
    std::sort(again.begin(), again.end());
    CHECK(blocks == again);
    for (void* block : again) Cache().Free(block);
  });
  CHECK_EQ(Cache().common_bytes(), int64_t{kBlocks * kBytes});  // Its own too, now that it ended.
  CheckNothingIsKept();
}

TEST(WhatNobodyNeededSinceTheLastLookGoesBack) {
  constexpr size_t kBytes = 1 << 20;
  std::vector<void*> peak;
  for (int i = 0; i < 20; ++i) peak.push_back(Cache().Allocate(kBytes));
  for (void* block : peak) Cache().Free(block);
  Cache().TrimUnused();
  CHECK_EQ(Cache().common_bytes(), int64_t{20 * kBytes});  // They were needed since the last look.
  for (int i = 0; i < 100; ++i) {
    void* const one = Cache().Allocate(kBytes);
    void* const two = Cache().Allocate(kBytes);
    Cache().Free(one);
    Cache().Free(two);
  }
  Cache().TrimUnused();
  CHECK_EQ(Cache().common_bytes(), int64_t{2 * kBytes});
  Cache().TrimUnused();
  CHECK_EQ(Cache().common_bytes(), 0);
  CheckNothingIsKept();
}

int64_t fake_ms = 0;

// What a session does all the time: blocks of 1 MB, two at a time.
void RunSteps() {
  for (int i = 0; i < 100; ++i) {
    void* const one = Cache().Allocate(1 << 20);
    void* const two = Cache().Allocate(1 << 20);
    Cache().Free(one);
    Cache().Free(two);
  }
}

TEST(ASessionThatRunsGivesAPeakBackAfterAWhile) {
  constexpr int64_t kBytes = 1 << 20;
  const BlockCache::User session;
  fake_ms = BlockCache::SteadyMs() + 3'600'000;
  Cache().UseClock([] { return fake_ms; });
  RunSteps();  // Looks for the first time in this hour.
  std::vector<void*> peak;
  for (int i = 0; i < 20; ++i) peak.push_back(Cache().Allocate(kBytes));
  for (void* block : peak) Cache().Free(block);
  fake_ms += 9'999;
  RunSteps();
  CHECK_EQ(Cache().common_bytes(), 20 * kBytes);
  fake_ms += 1;
  RunSteps();
  CHECK_EQ(Cache().common_bytes(), 20 * kBytes);  // All were needed in these ten seconds.
  fake_ms += 9'999;
  RunSteps();
  CHECK_EQ(Cache().common_bytes(), 20 * kBytes);
  fake_ms += 1;
  RunSteps();
  CHECK_EQ(Cache().common_bytes(), 2 * kBytes);
  fake_ms += 10'000;
  RunSteps();
  CHECK_EQ(Cache().common_bytes(), 2 * kBytes);  // Those that steps use stay.
  Cache().UseClock(&BlockCache::SteadyMs);
}

TEST(TheLastUserLeavesNothing) {
  constexpr size_t kBytes = 1 << 20;
  void* left;
  {
    BlockCache::User first;
    {
      BlockCache::User second;
      left = Cache().Allocate(kBytes);
      Cache().Free(Cache().Allocate(kBytes));
    }
    CHECK_EQ(Cache().common_bytes(), int64_t{kBytes});
  }
  CHECK_EQ(Cache().common_bytes(), 0);
  Cache().Free(left);  // As a variable's memory, which goes after the executors of its session.
  CHECK_EQ(Cache().common_bytes(), 0);
  {
    BlockCache::User another;
    Cache().Free(Cache().Allocate(kBytes));
    CHECK_EQ(Cache().common_bytes(), int64_t{kBytes});
    CheckNothingIsKept();
  }
  static const BlockCache::User of_the_tests_below;
}

TEST(AThreadKeepsItsBlocksHoweverOftenItUsesThem) {
  OnThread([] {
    for (int i = 0; i < 1000; ++i) Block::New(1024, 1).Free();
    CHECK_EQ(Cache().common_bytes(), 0);
  });
  CheckNothingIsKept();
}

TEST(AnotherThreadMayFree) {
  std::vector<Block> blocks;
  OnThread([&] {
    for (int i = 0; i < 300; ++i) blocks.push_back(Block::New(50 * i, i));
  });
  OnThread([&] {
    for (const Block& block : blocks) block.Free();
  });
  int64_t bytes = 0;
  for (const Block& block : blocks) {
    bytes += BlockCache::BytesOf(BlockCache::ClassOf(block.bytes));
  }
  CHECK_EQ(Cache().common_bytes(), bytes);
  CheckNothingIsKept();
}

// Goes when all else of its thread is gone, as it was there before.
struct FreesLate {
  void* block = nullptr;
  ~FreesLate() {
    Cache().Free(block);
    Block::New(200, 3).Free();
  }
};

TEST(AThreadMayFreeAfterItsEnd) {
  OnThread([] {
    static thread_local FreesLate late;
    CHECK(late.block == nullptr);  // It is made here, before the cache has anything of this thread.
    late.block = Cache().Allocate(500);
    Block::New(500, 2).Free();
  });
  CHECK_EQ(Cache().common_bytes(), 512 + 512 + 256);
  CheckNothingIsKept();
}

TEST(ManyThreadsHandBlocksToEachOther) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kRounds = 4'000;
#else
  constexpr int kRounds = 20'000;
#endif
  constexpr int kThreads = 8, kPlaces = 64;
  std::vector<std::atomic<Block*>> places(kPlaces);
  std::atomic<bool> stop{false};
  std::thread trimmer([&] {
    while (!stop.load()) {
      Cache().Trim();
      std::this_thread::yield();
    }
  });
  // Twice: the second threads find what the first gave up.
  for (int generation = 0; generation < 2; ++generation) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(t);
        for (int round = 0; round < kRounds; ++round) {
          const size_t bytes = random() % 8 == 0 ? random() % 40'000 : random() % 600;
          auto* block = new Block(Block::New(bytes, t * 16 + round % 16));
          block = places[random() % kPlaces].exchange(block);
          if (block == nullptr) continue;
          block->Free();
          delete block;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  stop.store(true);
  trimmer.join();
  for (auto& place : places) {
    Block* const block = place.load();
    if (block != nullptr) OnThread([block] { block->Free(); });
    delete block;
  }
  CHECK(Cache().common_bytes() <= BlockCache::kMostBytes);
  CheckNothingIsKept();
}

}  // namespace
}  // namespace workbench
