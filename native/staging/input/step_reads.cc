#include "staging/input/step_reads.h"

namespace workbench {

StepReads& StepReads::Global() {
  static auto* const reads = new StepReads;
  return *reads;
}

bool StepReads::Take(int64_t step, const std::string& buffer, std::string* source) {
  std::lock_guard<std::mutex> lock(mu_);
  Add(&takes_, &next_take_, step, buffer, "");
  const Entry* read = Find(reads_, step, buffer);
  if (read == nullptr) return false;
  *source = read->source;
  return true;
}

bool StepReads::Read(int64_t step, const std::string& buffer, const std::string& source) {
  std::lock_guard<std::mutex> lock(mu_);
  Add(&reads_, &next_read_, step, buffer, source);
  return Find(takes_, step, buffer) != nullptr;
}

const StepReads::Entry* StepReads::Find(const Latest& latest, int64_t step,
                                        const std::string& buffer) {
  for (const Entry& entry : latest) {
    if (entry.step == step && entry.buffer == buffer) return &entry;
  }
  return nullptr;
}

void StepReads::Add(Latest* latest, size_t* next, int64_t step, const std::string& buffer,
                    const std::string& source) {
  Entry& entry = (*latest)[*next];
  *next = (*next + 1) % latest->size();
  entry.step = step;
  entry.buffer = buffer;
  entry.source = source;
}

}  // namespace workbench
