#ifndef WORKBENCH_EXECUTOR_MEMORY_BLOCK_CACHE_H_
#define WORKBENCH_EXECUTOR_MEMORY_BLOCK_CACHE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace workbench {

// Memory of steps that come again and again: a freed block waits for the next one of its size. The
// C library would give much of it back to the kernel, and every page of it costs a fault next time.
//
// Blocks are aligned to 64 bytes and may be freed by any thread. Small ones are kept by the thread
// that freed them, without a lock; large ones, and what a thread has too many of, in common.
class BlockCache {
 public:
  static constexpr size_t kAlignment = 64;
  // Larger blocks are the C library's alone.
  static constexpr size_t kLargest = size_t{64} << 20;
  // In common, freed blocks beyond this sum go back.
  static constexpr int64_t kMostBytes = int64_t{512} << 20;

  static BlockCache& Get();

  // Null if there is no memory.
  void* Allocate(size_t bytes);
  void Free(void* block);
  // Gives back what is kept in common; each thread gives up its own when it ends.
  void Trim();
  // The same with what has lain in common, unused, since the last call. Frees call it now and then.
  void TrimUnused();

  // Somebody whose steps come again and again. When the last one goes the cache is trimmed, and
  // keeps nothing in common until the next one comes.
  class User {
   public:
    User();
    ~User();
    User(const User&) = delete;
    User& operator=(const User&) = delete;
  };

  int64_t common_bytes() const { return common_bytes_.load(std::memory_order_relaxed); }

  // The least class whose blocks hold so many bytes, and what they hold.
  static int ClassOf(size_t bytes);
  static size_t BytesOf(int size_class);
  static constexpr int kClasses = 80;

 private:
  // A thread keeps at most so many bytes of a class, and no larger blocks.
  static constexpr size_t kThreadBytes = size_t{64} << 10;
  static constexpr size_t kThreadLargest = size_t{16} << 10;

  // In front of each block, and what it is while it waits.
  struct alignas(kAlignment) Header {
    int32_t size_class;
    Header* next;
  };
  struct List {
    Header* first = nullptr;
    int32_t count = 0;
    int32_t least = 0;  // Blocks since the last TrimUnused: so many were never needed.
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
    List list;
  };
  static_assert(sizeof(Common) == kAlignment, "a lock and its list are one cache line");

  static ThreadLists* OfThread();
  void PushCommon(Header* block);
  void TrimNowAndThen();
  Header* PopCommon(int size_class);
  void GiveUp(ThreadLists* lists);

  std::array<Common, kClasses> common_;
  std::atomic<int64_t> common_bytes_{0};
  std::atomic<int64_t> next_trim_ms_{0};  // Of the steady clock.
  std::atomic<bool> unused_{false};       // The last user has gone.
  std::mutex users_mu_;
  int users_ = 0;  // Guarded by users_mu_.
};

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_MEMORY_BLOCK_CACHE_H_
