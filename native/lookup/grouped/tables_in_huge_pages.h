#ifndef WORKBENCH_LOOKUP_GROUPED_TABLES_IN_HUGE_PAGES_H_
#define WORKBENCH_LOOKUP_GROUPED_TABLES_IN_HUGE_PAGES_H_

#include <cstddef>

namespace workbench::grouped {

// Called at each use of a table or slot: has a further part of it moved into huge pages, in the
// background. The first time in a process the log says so.
void MoveIntoHugePages(const void* memory, size_t bytes);

}  // namespace workbench::grouped

#endif  // WORKBENCH_LOOKUP_GROUPED_TABLES_IN_HUGE_PAGES_H_
