#ifndef WORKBENCH_STAGING_INPUT_STEP_READS_H_
#define WORKBENCH_STAGING_INPUT_STEP_READS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include "threading/guarded_by.h"

namespace workbench {

// Which of the latest steps of this process took an item of a stage, and which read the source of a
// stage by themselves. A step that did both has parts of two items.
class StepReads {
 public:
  static StepReads& Global();

  // The step takes from the buffer. Whether it reads a source of the buffer's stage too: then
  // `source` is its name.
  bool Take(int64_t step, const std::string& buffer, std::string* source);

  // The step reads a source of the buffer's stage. Whether it takes from the buffer too.
  bool Read(int64_t step, const std::string& buffer, const std::string& source);

 private:
  struct Entry {
    int64_t step = 0;  // 0 is no step.
    std::string buffer;
    std::string source;
  };
  // Both ops have no inputs: in one step they start together.
  using Latest = std::array<Entry, 256>;

  static const Entry* Find(const Latest& latest, int64_t step, const std::string& buffer);
  static void Add(Latest* latest, size_t* next, int64_t step, const std::string& buffer,
                  const std::string& source);

  std::mutex mu_;  // Innermost.
  Latest takes_ WORKBENCH_GUARDED_BY(mu_);
  Latest reads_ WORKBENCH_GUARDED_BY(mu_);
  size_t next_take_ WORKBENCH_GUARDED_BY(mu_) = 0;
  size_t next_read_ WORKBENCH_GUARDED_BY(mu_) = 0;
};

}  // namespace workbench

#endif  // WORKBENCH_STAGING_INPUT_STEP_READS_H_
