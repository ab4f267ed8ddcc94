#ifndef WORKBENCH_LOOKUP_GROUPED_HUGE_PAGES_H_
#define WORKBENCH_LOOKUP_GROUPED_HUGE_PAGES_H_

// Huge pages for tables: rows are read at random, and with pages of 4 KiB nearly every row of a
// large table costs a walk of the page table.
//
// The kernel copies what is in small pages, for seconds where a table has gigabytes. So a thread in
// the background has it done, in pieces, and rests in between.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "threading/guarded_by.h"

namespace workbench {

class HugePages {
 public:
  // Moves `bytes` from `begin` on, both multiples of a huge page; none of it need be mapped.
  using Move = std::function<void(void* begin, size_t bytes)>;

  // By the kernel.
  HugePages();
  explicit HugePages(Move move);
  // Waits for the piece that is being moved.
  ~HugePages();
  HugePages(const HugePages&) = delete;
  HugePages& operator=(const HugePages&) = delete;

  // Bytes that one call has moved, at most: memory that is soon replaced is not worth more.
  static constexpr size_t kBytesOfCall = size_t{16} << 20;
  static constexpr size_t kPiece = size_t{2} << 20;

  // Has a further part of this memory moved, and returns at once. Nothing happens where all of it
  // was moved before, where memory is small, or where there is no thread to be had. The memory may
  // be freed at any time.
  //
  // Returns whether the memory is new, and large enough.
  bool Ask(const void* memory, size_t bytes);

 private:
  struct Part {
    size_t bytes = 0;
    uintptr_t next = 0;   // What lies before it was moved.
    uintptr_t until = 0;  // As far as calls have asked for it.
    uintptr_t end = 0;
  };

  void Run();
  // The next piece, once there is one; null when the object goes.
  void* AwaitPiece();

  const Move move_;
  std::mutex mu_;
  std::condition_variable changed_;
  std::unordered_map<const void*, Part> parts_ WORKBENCH_GUARDED_BY(mu_);
  std::deque<const void*> touched_ WORKBENCH_GUARDED_BY(mu_);  // Keys of what is left to move.
  bool ends_ WORKBENCH_GUARDED_BY(mu_) = false;
  std::thread thread_ WORKBENCH_GUARDED_BY(mu_);
};

}  // namespace workbench

#endif  // WORKBENCH_LOOKUP_GROUPED_HUGE_PAGES_H_
