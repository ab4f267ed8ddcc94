#ifndef WORKBENCH_EXECUTOR_MEMORY_BLOCK_CACHE_H_
#define WORKBENCH_EXECUTOR_MEMORY_BLOCK_CACHE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "threading/guarded_by.h"

namespace workbench {

// Memory of steps that repeat: a freed block is used again for the next one of its size. The C
// library would return much of it to the operating system, and every page would cost a fault in the
// next step.
//
// Blocks are aligned to 64 bytes and may be freed by any thread. Small blocks stay with the thread
// that freed them, without a lock; large blocks, and a thread's surplus, go to common lists.
class BlockCache {
 public:
  static constexpr size_t kAlignment = 64;
  // Larger blocks come from the C library, and return to it.
  static constexpr size_t kLargest = size_t{64} << 20;
  // The common lists hold at most this many bytes; more freed blocks return to the C library.
  static constexpr int64_t kMostBytes = int64_t{512} << 20;

  static BlockCache& Get();

  // Null if there is no memory.
  void* Allocate(size_t bytes);
  void Free(void* block);
  // Returns the blocks of the common lists to the C library. A thread's own go there when it ends.
  void Trim();
  // The same with blocks that were unused since the last call. Free calls this now and then.
  void TrimUnused();

  // An executor whose steps repeat. When the last user is gone the cache is trimmed, and the common
  // lists stay empty until the next user comes.
  class User {
   public:
    User();
    ~User();
    User(const User&) = delete;
    User& operator=(const User&) = delete;
  };

  // Milliseconds; the steady clock unless a test has another.
  using Clock = int64_t (*)();
  void UseClock(Clock clock) { clock_.store(clock, std::memory_order_relaxed); }
  static int64_t SteadyMs();

  int64_t common_bytes() const { return common_bytes_.load(std::memory_order_relaxed); }

  // The smallest class whose blocks hold `bytes`, and how many bytes a class's blocks hold.
  static int ClassOf(size_t bytes);
  static size_t BytesOf(int size_class);
  static constexpr int kClasses = 80;

 private:
  // A thread keeps at most kThreadBytes of a class, and no larger blocks than kThreadLargest.
  static constexpr size_t kThreadBytes = size_t{64} << 10;
  static constexpr size_t kThreadLargest = size_t{16} << 10;

  // In front of each block.
  struct alignas(kAlignment) Header {
    int32_t size_class;
    Header* next;
  };
  struct List {
    Header* first = nullptr;
    int32_t count = 0;
    int32_t least = 0;  // Fewest blocks since the last TrimUnused: these were not needed.
    void Push(Header* block) {
      block->next = first;
      first = block;
      ++count;
    }
    Header* Pop() {
      Header* block = first;
      first = block->next;
      if (--count < least) least = count;
      return block;
    }
  };
  struct ThreadLists;
  // Threads that use blocks of different sizes must not share a cache line.
  struct alignas(kAlignment) Common {
    std::mutex mu;
    List list WORKBENCH_GUARDED_BY(mu);
  };
  static_assert(sizeof(Common) == kAlignment, "a lock and its list are one cache line");

  static ThreadLists* OfThread();
  void PushCommon(Header* block);
  void TrimNowAndThen();
  Header* PopCommon(int size_class);
  void TakeOver(ThreadLists* lists);

  std::array<Common, kClasses> common_;
  std::atomic<int64_t> common_bytes_{0};
  std::atomic<Clock> clock_{&SteadyMs};
  std::atomic<int64_t> next_trim_ms_{0};  // Of the clock.
  std::atomic<bool> unused_{false};       // The last user has gone.
  std::mutex users_mu_;
  int users_ WORKBENCH_GUARDED_BY(users_mu_) = 0;
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_MEMORY_BLOCK_CACHE_H_
