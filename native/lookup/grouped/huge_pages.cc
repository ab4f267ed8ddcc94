#include "lookup/grouped/huge_pages.h"

#include <algorithm>
#include <chrono>
#include <utility>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#endif

#include "threading/started_thread.h"

namespace workbench {
namespace {

// Below it the caches hold what the page table needs.
constexpr size_t kWorthAsking = size_t{4} << 20;
// More tables than a process has; what was freed is forgotten then.
constexpr size_t kMostKnown = 1 << 14;
// Time for which the thread rests after a piece, in times of the piece: threads that make or free
// memory wait for the kernel meanwhile, and cores have other work.
constexpr int kRest = 3;

void MoveByKernel(void* begin, size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  // New since Linux 6.1; headers may not know it. Without it the kernel takes its time.
  constexpr int kCollapse = 25;
  madvise(begin, bytes, MADV_HUGEPAGE);
  madvise(begin, bytes, kCollapse);
#else
  (void)begin;
  (void)bytes;
#endif
}

// One that has just woken up is not to interrupt others.
void GiveWay(std::thread* thread) {
#if defined(__linux__)
  pthread_setname_np(thread->native_handle(), "wb_huge_pages");
  sched_param none{};
  pthread_setschedparam(thread->native_handle(), SCHED_BATCH, &none);
#else
  (void)thread;
#endif
}

}  // namespace

HugePages::HugePages() : HugePages(MoveByKernel) {}

HugePages::HugePages(Move move) : move_(std::move(move)) {}

HugePages::~HugePages() {
  std::thread thread;
  {
    const std::lock_guard<std::mutex> hold(mu_);
    ends_ = true;
    thread = std::move(thread_);
  }
  changed_.notify_all();
  if (thread.joinable()) thread.join();
}

bool HugePages::Ask(const void* memory, size_t bytes) {
  if (bytes < kWorthAsking) return false;
  const std::lock_guard<std::mutex> hold(mu_);
  if (parts_.size() >= kMostKnown) {
    parts_.clear();
    touched_.clear();
  }
  Part& part = parts_[memory];
  const bool is_new = part.bytes != bytes;
  const bool waits = part.next < part.until;
  if (is_new) {
    // With what lies beside it in the first and the last huge page: most often another table.
    // Where that is no memory of this process, the kernel does the rest.
    const uintptr_t at = reinterpret_cast<uintptr_t>(memory);
    part.bytes = bytes;
    part.next = part.until = at / kPiece * kPiece;
    part.end = (at + bytes + kPiece - 1) / kPiece * kPiece;
  }
  part.until = std::min<uintptr_t>(part.until + kBytesOfCall, part.end);
  if (part.next == part.until || waits) return is_new;
  touched_.push_back(memory);
  if (!thread_.joinable()) {
    thread_ = StartedThread([this] { Run(); });
    if (thread_.joinable()) GiveWay(&thread_);
  }
  changed_.notify_one();
  return is_new;
}

void HugePages::Run() {
  using Clock = std::chrono::steady_clock;
  while (void* const piece = AwaitPiece()) {
    const Clock::time_point start = Clock::now();
    move_(piece, kPiece);
    const Clock::time_point until = Clock::now() + kRest * (Clock::now() - start);
    std::unique_lock<std::mutex> hold(mu_);
    changed_.wait_until(hold, until, [&] { return ends_; });
  }
}

void* HugePages::AwaitPiece() {
  std::unique_lock<std::mutex> hold(mu_);
  changed_.wait(hold, [this] { return ends_ || !touched_.empty(); });
  if (ends_) return nullptr;
  Part& part = parts_[touched_.front()];
  void* const piece = reinterpret_cast<void*>(part.next);
  part.next += kPiece;
  if (part.next == part.until) touched_.pop_front();
  return piece;
}

}  // namespace workbench
