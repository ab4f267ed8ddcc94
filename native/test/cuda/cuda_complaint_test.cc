#include "cuda/complaint.h"

#include "test/support/check.h"

namespace workbench::cuda {
namespace {

TEST(TheFirstComplaintIsKept) {
  uint64_t word = 0;
  Complain(Wrong::kUnordered, (1 << kFeatureBits) - 1, INT32_MAX, &word);
  Complain(Wrong::kNoSuchRow, 0, 0, &word);
  const Complaint found = ReadComplaint(word);
  CHECK(found.what == Wrong::kUnordered);
  CHECK_EQ(found.feature, (1 << kFeatureBits) - 1);
  CHECK_EQ(found.example, INT32_MAX);
  Complain(Wrong::kSplits, 1, 1, nullptr);
}

TEST(ComplaintsSayWhatWasFoundAndWhatToDo) {
  CHECK_HAS(Text({Wrong::kNoSuchRow, 0, 7}),
            "row 7 of an earlier step asked for an id that its embedding table does not have");
  CHECK_HAS(Text({Wrong::kUnordered, 0, 7}), "order them with tf.sparse.reorder");
  CHECK_HAS(Text({Wrong::kSplits, 0, 7}), "row_splits that fall");
  CHECK_EQ(Text({}), "");
}

}  // namespace
}  // namespace workbench::cuda
