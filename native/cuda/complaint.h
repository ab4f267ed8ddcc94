#ifndef WORKBENCH_CUDA_COMPLAINT_H_
#define WORKBENCH_CUDA_COMPLAINT_H_

// What a kernel says of ids that are wrong. Nobody waits for a GPU to end a step, so a kernel leaves
// such ids out and notes the first one in a word of the host's memory; the op's next step reads it.

#include <cstdint>
#include <string>

#include "cuda/device/portable.h"

namespace workbench::cuda {

enum class IdFault : uint32_t {
  kNone,
  kNoSuchRow,  // an id is not in its table
  kUnordered,  // ids do not come in order of their examples, or lie outside of them
  kSplits      // row_splits fall, or end elsewhere than the ids
};

struct Complaint {
  IdFault what = IdFault::kNone;
  int64_t feature = 0;
  int64_t example = 0;
};

constexpr int kExampleBits = 32;
constexpr int kFeatureBits = 28;

WORKBENCH_DEVICE void Complain(IdFault what, int64_t feature, int64_t example, uint64_t* word) {
  if (word == nullptr) return;
  const uint64_t bits = static_cast<uint64_t>(what) << (kExampleBits + kFeatureBits) |
                        static_cast<uint64_t>(feature) << kExampleBits |
                        static_cast<uint64_t>(example);
  // One store, so that no two complaints mix.
  volatile uint64_t* to = word;
  if (*to == 0) *to = bits;
}

inline Complaint ReadComplaint(uint64_t word) {
  Complaint found;
  found.what = static_cast<IdFault>(word >> (kExampleBits + kFeatureBits));
  found.feature = static_cast<int64_t>(word >> kExampleBits & ((uint64_t{1} << kFeatureBits) - 1));
  found.example = static_cast<int64_t>(word & ((uint64_t{1} << kExampleBits) - 1));
  return found;
}

// The rest of a sentence that begins with the feature.
inline std::string Text(const Complaint& complaint) {
  const std::string row = "row " + std::to_string(complaint.example) + " of an earlier step ";
  switch (complaint.what) {
    case IdFault::kNoSuchRow:
      return row + "asked for an id that its embedding table does not have, and went without it";
    case IdFault::kUnordered:
      return row + "had ids that were not in order of their rows, or outside dense_shape, which a "
                   "lookup on a GPU does not take; order them with tf.sparse.reorder";
    case IdFault::kSplits:
      return row + "had row_splits that fall or do not end at the number of ids";
    case IdFault::kNone: break;
  }
  return "";
}

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_COMPLAINT_H_
