#ifndef WORKBENCH_LOOKUP_GROUPED_HUGE_PAGES_H_
#define WORKBENCH_LOOKUP_GROUPED_HUGE_PAGES_H_

// Huge pages for tables: rows are read at random, and with pages of 4 KiB nearly every row of a
// large table costs a walk of the page table.

#include <cstddef>
#include <mutex>
#include <unordered_map>

namespace workbench {

// Asks for memory once, and again where it lies elsewhere.
class HugePages {
 public:
  // Asks the kernel to put what it can of this memory into huge pages; does nothing where it was
  // asked before, where memory is small, or where the kernel has none to give.
  void Ask(const void* memory, size_t bytes);

 private:
  std::mutex mu_;
  std::unordered_map<const void*, size_t> asked_;
};

// The tables of this process.
HugePages& TablesInHugePages();

}  // namespace workbench

#endif  // WORKBENCH_LOOKUP_GROUPED_HUGE_PAGES_H_
