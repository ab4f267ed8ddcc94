#include "lookup/grouped/tables_in_huge_pages.h"

#include "lookup/grouped/huge_pages.h"
#include "tensorflow/core/platform/logging.h"

namespace workbench::grouped {

void MoveIntoHugePages(const void* memory, size_t bytes) {
  // Never destroyed: a step may run while the process exits.
  static HugePages* const all = new HugePages;
  if (!all->Ask(memory, bytes)) return;
  LOG_FIRST_N(INFO, 1) << "Workbench moves embedding tables into huge pages in the background, at "
                       << "most " << (HugePages::kBytesOfCall >> 20) << " MiB of a table for each "
                       << "step that uses it; the first one has " << (bytes >> 20) << " MiB";
}

}  // namespace workbench::grouped
