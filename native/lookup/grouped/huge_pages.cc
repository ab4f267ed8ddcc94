#include "lookup/grouped/huge_pages.h"

#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace workbench {
namespace {

constexpr uintptr_t kHuge = uintptr_t{2} << 20;
// Below it the caches hold what the page table needs.
constexpr size_t kWorthAsking = size_t{4} << 20;
// More tables than a process has; what was freed is forgotten then.
constexpr size_t kMostKnown = 1 << 14;

void AskKernel(const void* memory, size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  // With what lies beside it in the first and the last huge page: most often another table. Where
  // that is no memory of this process, the kernel does the rest.
  const uintptr_t from = reinterpret_cast<uintptr_t>(memory) / kHuge * kHuge;
  const uintptr_t to = (reinterpret_cast<uintptr_t>(memory) + bytes + kHuge - 1) / kHuge * kHuge;
  void* begin = reinterpret_cast<void*>(from);
  // New since Linux 6.1; headers may not know it. Without it the kernel takes its time.
  constexpr int kCollapse = 25;
  madvise(begin, to - from, MADV_HUGEPAGE);
  madvise(begin, to - from, kCollapse);
#else
  (void)memory;
  (void)bytes;
#endif
}

}  // namespace

void HugePages::Ask(const void* memory, size_t bytes) {
  if (bytes < kWorthAsking) return;
  {
    const std::lock_guard<std::mutex> hold(mu_);
    if (asked_.size() >= kMostKnown) asked_.clear();
    const auto [known, added] = asked_.try_emplace(memory, bytes);
    if (!added && known->second == bytes) return;
    known->second = bytes;
  }
  AskKernel(memory, bytes);
}

HugePages& TablesInHugePages() {
  static HugePages* const all = new HugePages;
  return *all;
}

}  // namespace workbench
