#include "executor/memory/block_cache.h"

#include <malloc.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>

namespace workbench {
namespace {

constexpr int kFineClasses = 16;  // Of 64 bytes to 1 KB, in steps of 64; then four to a doubling.
constexpr size_t kFineStep = 64;
constexpr size_t kFineLargest = kFineClasses * kFineStep;
constexpr size_t kMostOfOne = PTRDIFF_MAX - 4096;

// A block that no step needed for this long returns to the C library.
constexpr int64_t kUnusedMs = 10'000;
// A thread looks at the clock once for this many blocks that it moves to the common lists.
constexpr uint32_t kBlocksPerLook = 64;

// Null before a thread's first block and after its end.
enum class ThreadState : char { kNew, kAlive, kEnded };
thread_local ThreadState thread_state = ThreadState::kNew;

}  // namespace

struct BlockCache::ThreadLists {
  std::array<List, kClasses> of;

  ThreadLists() { thread_state = ThreadState::kAlive; }
  ~ThreadLists() {
    thread_state = ThreadState::kEnded;
    BlockCache::Get().TakeOver(this);
  }
};

BlockCache& BlockCache::Get() {
  // Never destroyed: tensors outlive what is static here.
  static BlockCache* cache = new BlockCache();
  return *cache;
}

int BlockCache::ClassOf(size_t bytes) {
  if (bytes <= kFineLargest) return bytes == 0 ? 0 : int((bytes - 1) / kFineStep);
  const int doubling = 63 - __builtin_clzll(bytes - 1);  // 2^doubling < bytes <= 2^(doubling + 1)
  const int quarter = int(((bytes - 1) >> (doubling - 2)) & 3);
  return kFineClasses + (doubling - 10) * 4 + quarter;
}

size_t BlockCache::BytesOf(int size_class) {
  if (size_class < kFineClasses) return (size_class + 1) * kFineStep;
  const int doubling = 10 + (size_class - kFineClasses) / 4;
  const size_t quarter = (size_class - kFineClasses) % 4;
  return (size_t{1} << doubling) + ((quarter + 1) << (doubling - 2));
}

BlockCache::ThreadLists* BlockCache::OfThread() {
  static thread_local ThreadLists lists;
  return thread_state == ThreadState::kEnded ? nullptr : &lists;
}

void* BlockCache::Allocate(size_t bytes) {
  const bool kept = bytes <= kLargest;
  const int size_class = kept ? ClassOf(bytes) : -1;
  Header* block = nullptr;
  if (kept) {
    ThreadLists* lists = bytes <= kThreadLargest && thread_state != ThreadState::kEnded
                             ? OfThread()
                             : nullptr;
    if (lists != nullptr && lists->of[size_class].first != nullptr) {
      return lists->of[size_class].Pop() + 1;
    }
    block = PopCommon(size_class);
  }
  if (block == nullptr) {
    if (bytes > kMostOfOne) return nullptr;  // The sum below would begin at 0 again.
    const size_t size = kept ? BytesOf(size_class) : (bytes + kAlignment - 1) & ~(kAlignment - 1);
    block = static_cast<Header*>(std::aligned_alloc(kAlignment, sizeof(Header) + size));
    if (block == nullptr) return nullptr;
  }
  block->size_class = size_class;
  return block + 1;
}

void BlockCache::Free(void* memory) {
  if (memory == nullptr) return;
  Header* block = static_cast<Header*>(memory) - 1;
  if (block->size_class < 0) {
    std::free(block);
    return;
  }
  const size_t bytes = BytesOf(block->size_class);
  if (bytes <= kThreadLargest && thread_state != ThreadState::kEnded) {
    List& list = OfThread()->of[block->size_class];
    if ((list.count + 1) * bytes <= kThreadBytes) {
      list.Push(block);
      return;
    }
  }
  PushCommon(block);
}

void BlockCache::PushCommon(Header* block) {
  TrimNowAndThen();
  const int64_t bytes = BytesOf(block->size_class);
  if (unused_.load(std::memory_order_relaxed)) {
    std::free(block);
    return;
  }
  if (common_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes > kMostBytes) {
    common_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    std::free(block);
    return;
  }
  Common& common = common_[block->size_class];
  std::lock_guard<std::mutex> lock(common.mu);
  common.list.Push(block);
}

BlockCache::Header* BlockCache::PopCommon(int size_class) {
  Common& common = common_[size_class];
  std::lock_guard<std::mutex> lock(common.mu);
  if (common.list.first == nullptr) return nullptr;
  common_bytes_.fetch_sub(BytesOf(size_class), std::memory_order_relaxed);
  return common.list.Pop();
}

void BlockCache::TakeOver(ThreadLists* lists) {
  for (List& list : lists->of) {
    while (list.first != nullptr) PushCommon(list.Pop());
  }
}

void BlockCache::Trim() {
  for (int size_class = 0; size_class < kClasses; ++size_class) {
    while (Header* block = PopCommon(size_class)) std::free(block);
  }
}

void BlockCache::TrimUnused() {
  for (int size_class = 0; size_class < kClasses; ++size_class) {
    List dropped;
    {
      Common& common = common_[size_class];
      std::lock_guard<std::mutex> lock(common.mu);
      for (int32_t unused = common.list.least; unused > 0; --unused) {
        dropped.Push(common.list.Pop());
      }
      common.list.least = common.list.count;
    }
    common_bytes_.fetch_sub(dropped.count * BytesOf(size_class), std::memory_order_relaxed);
    while (dropped.first != nullptr) std::free(dropped.Pop());
  }
}

int64_t BlockCache::SteadyMs() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

void BlockCache::TrimNowAndThen() {
  static thread_local uint32_t pushes = 0;
  if (++pushes % kBlocksPerLook != 0) return;
  const int64_t now = clock_.load(std::memory_order_relaxed)();
  int64_t due = next_trim_ms_.load(std::memory_order_relaxed);
  if (now >= due && next_trim_ms_.compare_exchange_strong(due, now + kUnusedMs)) TrimUnused();
}

BlockCache::User::User() {
  BlockCache& cache = Get();
  std::lock_guard<std::mutex> lock(cache.users_mu_);
  ++cache.users_;
  cache.unused_.store(false, std::memory_order_relaxed);
}

BlockCache::User::~User() {
  BlockCache& cache = Get();
  std::lock_guard<std::mutex> lock(cache.users_mu_);
  if (--cache.users_ > 0) return;
  cache.unused_.store(true, std::memory_order_relaxed);
  if (cache.common_bytes() == 0) return;
  cache.Trim();
#if defined(__GLIBC__)
  malloc_trim(0);  // Blocks lie between others, so the C library would return less by itself.
#endif
}

}  // namespace workbench
