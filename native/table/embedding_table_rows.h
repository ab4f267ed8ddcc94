#ifndef WORKBENCH_TABLE_EMBEDDING_TABLE_ROWS_H_
#define WORKBENCH_TABLE_EMBEDDING_TABLE_ROWS_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace workbench {

// Takes everything out, its memory too; `= {}` would keep that.
template <typename T>
void Free(std::vector<T>* values) {
  std::vector<T>().swap(*values);
}

// Gives memory back that a vector no longer needs, if it is much.
template <typename T>
void Shrink(std::vector<T>* values) {
  if (2 * values->size() < values->capacity()) values->shrink_to_fit();
}

// Rows of `width` values in chunks that never move. The first chunks double from 16 rows, so that
// a small table is small; later ones have 256 rows, so that a large one wastes little.
template <typename T>
class RowColumn {
 public:
  explicit RowColumn(int64_t width) : width_(width) {}

  T* At(int64_t row) { return chunks_[ChunkOf(row)].get() + Offset(row) * width_; }
  const T* At(int64_t row) const { return chunks_[ChunkOf(row)].get() + Offset(row) * width_; }

  int64_t width() const { return width_; }

  // Makes room for this many rows; new ones have no value yet.
  void Reserve(int64_t rows) {
    while (Capacity() < rows) {
      const int64_t count = ChunkRows(static_cast<int64_t>(chunks_.size()));
      chunks_.emplace_back(new T[count * width_]);
    }
  }

  // Gives chunks back that hold none of the first `rows` rows.
  void Release(int64_t rows) {
    while (!chunks_.empty() && ChunkStart(static_cast<int64_t>(chunks_.size()) - 1) >= rows) {
      chunks_.pop_back();
    }
    Shrink(&chunks_);
  }

  void Copy(int64_t from, int64_t to) { std::copy_n(At(from), width_, At(to)); }

  int64_t bytes() const {
    return Capacity() * width_ * static_cast<int64_t>(sizeof(T)) +
           static_cast<int64_t>(chunks_.capacity() * sizeof(chunks_[0]));
  }

 private:
  static constexpr int64_t kFirst = 16;
  static constexpr int64_t kMost = 256;
  static constexpr int64_t kDoubling = 5;  // chunks before those of kMost rows: 16 16 32 64 128

  static int64_t ChunkOf(int64_t row) {
    if (row >= kMost) return kDoubling - 1 + row / kMost;
    return row < kFirst ? 0 : 60 - __builtin_clzll(static_cast<uint64_t>(row));
  }
  static int64_t Offset(int64_t row) {
    return row >= kMost ? row % kMost : row - ChunkStart(ChunkOf(row));
  }
  static int64_t ChunkStart(int64_t chunk) {
    if (chunk >= kDoubling) return (chunk - kDoubling + 1) * kMost;
    return chunk == 0 ? 0 : kFirst << (chunk - 1);
  }
  static int64_t ChunkRows(int64_t chunk) { return ChunkStart(chunk + 1) - ChunkStart(chunk); }

  int64_t Capacity() const { return ChunkStart(static_cast<int64_t>(chunks_.size())); }

  int64_t width_;
  std::vector<std::unique_ptr<T[]>> chunks_;
};

}  // namespace workbench

#endif  // WORKBENCH_TABLE_EMBEDDING_TABLE_ROWS_H_
