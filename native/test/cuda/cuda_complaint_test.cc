#include "cuda/complaint.h"

#include "test/support/check.h"

namespace workbench::cuda {
namespace {

TEST(TheFirstComplaintIsKept) {
  uint64_t word = 0;
  Complain(IdFault::kUnordered, (1 << kFeatureBits) - 1, INT32_MAX, &word);
  Complain(IdFault::kNoSuchRow, 0, 0, &word);
  const Complaint found = ReadComplaint(word);
  CHECK(found.what == IdFault::kUnordered);
  CHECK_EQ(found.feature, (1 << kFeatureBits) - 1);
  CHECK_EQ(found.example, INT32_MAX);
  Complain(IdFault::kSplits, 1, 1, nullptr);
}

TEST(ComplaintsSayWhatWasFoundAndWhatToDo) {
  CHECK_HAS(Text({IdFault::kNoSuchRow, 0, 7}),
            "row 7 of an earlier step asked for an id that its embedding table does not have");
  CHECK_HAS(Text({IdFault::kUnordered, 0, 7}), "order them with tf.sparse.reorder");
  CHECK_HAS(Text({IdFault::kSplits, 0, 7}), "row_splits that fall");
  CHECK_EQ(Text({}), "");
}

}  // namespace
}  // namespace workbench::cuda
