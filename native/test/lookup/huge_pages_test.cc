#include "lookup/grouped/huge_pages.h"

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "test/support/check.h"
#include "test/support/latch.h"
#include "test/support/no_threads.h"

namespace workbench {
namespace {

constexpr size_t kPiece = HugePages::kPiece;
constexpr size_t kPiecesOfCall = HugePages::kBytesOfCall / kPiece;

constexpr size_t kBase = size_t{1} << 40;

const void* At(size_t piece) { return reinterpret_cast<const void*>(kBase + piece * kPiece); }

// Notes the pieces that are moved, and waits for them.
class Moved {
 public:
  HugePages::Move Note() {
    return [this](void* begin, size_t bytes) {
      const std::lock_guard<std::mutex> hold(mu_);
      CHECK_EQ(bytes, kPiece);
      pieces_.push_back((reinterpret_cast<size_t>(begin) - kBase) / kPiece);
      changed_.notify_all();
    };
  }

  std::vector<size_t> Await(size_t count) {
    std::unique_lock<std::mutex> hold(mu_);
    changed_.wait(hold, [&] { return pieces_.size() >= count; });
    return pieces_;
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  std::vector<size_t> pieces_;
};

TEST(HugePagesHoldWhatWasThere) {
  std::vector<int64_t> table(5 << 17);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<int64_t>(i);
  HugePages pages;
  for (int round = 0; round < 2; ++round) pages.Ask(table.data(), 8 * table.size());
  pages.Ask(table.data(), 100);
  for (size_t i = 0; i < table.size(); ++i) CHECK_EQ(table[i], static_cast<int64_t>(i));
}

TEST(WhoAsksDoesNotWaitForTheKernel) {
  test::Latch may_move(1);
  HugePages pages([&](void*, size_t) { may_move.Wait(); });
  CHECK(pages.Ask(At(0), 1000 * kPiece));
  CHECK(!pages.Ask(At(0), 1000 * kPiece));
  may_move.CountDown();
}

TEST(EachCallMovesAFurtherPartInPieces) {
  Moved moved;
  HugePages pages(moved.Note());
  const size_t all = 2 * kPiecesOfCall + 3;
  size_t expected = 0;
  for (size_t part : {kPiecesOfCall, kPiecesOfCall, size_t{3}}) {
    pages.Ask(At(0), all * kPiece);
    const std::vector<size_t> pieces = moved.Await(expected += part);
    CHECK_EQ(pieces.size(), expected);
    for (size_t i = 0; i < expected; ++i) CHECK_EQ(pieces[i], i);
  }
}

TEST(OnlyWhatIsNewIsMoved) {
  Moved moved;
  HugePages pages(moved.Note());
  CHECK(pages.Ask(At(0), 3 * kPiece));
  moved.Await(3);
  for (int round = 0; round < 5; ++round) CHECK(!pages.Ask(At(0), 3 * kPiece));
  CHECK(pages.Ask(At(50), 2 * kPiece));
  const std::vector<size_t> pieces = moved.Await(5);
  CHECK(pieces == (std::vector<size_t>{0, 1, 2, 50, 51}));
}

TEST(TablesStayWhereTheyAreWhereNoThreadIsToBeHad) {
  test::WithoutThreads([] {
    HugePages pages([](void*, size_t) { CHECK(false); });
    for (int round = 0; round < 3; ++round) pages.Ask(At(0), 3 * kPiece);
  });
}

TEST(MemoryThatGoesAwayMeanwhileDoesNoHarm) {
  HugePages pages;
  for (int round = 0; round < 4; ++round) {
    std::vector<char> table(6 * kPiece, 1);
    pages.Ask(table.data(), table.size());
  }
}

}  // namespace
}  // namespace workbench
