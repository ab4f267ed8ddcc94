#ifndef WORKBENCH_TRANSFERS_PACKING_H_
#define WORKBENCH_TRANSFERS_PACKING_H_

// Several tensors as one sequence of bytes: of each its sizes, then its elements. Integers are kept as
// distances to the least one, in as few bytes as the largest distance takes: ids of a table of 10,000
// rows in 2 and not in 8.

#include <cstdint>
#include <string>
#include <vector>

namespace workbench {

// Elements of a tensor: bytes that are only copied, or integers.
struct Elements {
  int bytes = 1;         // of one element
  bool integers = false;  // signed, of 4 or 8 bytes
};

// What is written. The tensors must outlive it.
class Packing {
 public:
  // The next tensor, of `count` elements.
  void Add(const void* data, int64_t count, Elements elements, const std::vector<int64_t>& sizes);

  int64_t bytes() const { return bytes_; }

  // Writes all to [bytes()].
  void Write(char* to) const;

 private:
  struct Part {
    const char* data;
    int64_t count;
    Elements elements;
    int64_t least;
    int width;  // bytes of an element as it is kept
    std::string head;
  };

  std::vector<Part> parts_;
  int64_t bytes_ = 0;
};

// What is read, tensor by tensor in the order in which they were added. What comes from a graph may
// not be believed: false says that the bytes are not of such tensors.
class Unpacking {
 public:
  Unpacking(const char* data, int64_t bytes) : at_(data), end_(data + bytes) {}

  // Sizes of the next tensor, none below 0.
  bool ReadSizes(Elements elements, std::vector<int64_t>* sizes);

  // Whether the bytes can hold `count` elements of the tensor whose sizes were read.
  bool Holds(int64_t count) const;

  // The elements, which the bytes hold.
  void ReadElements(int64_t count, void* to);

  bool done() const { return at_ == end_; }

 private:
  bool ReadNumber(uint64_t* number);

  const char* at_;
  const char* end_;
  Elements elements_;
  int64_t least_ = 0;
  int width_ = 1;
};

}  // namespace workbench

#endif  // WORKBENCH_TRANSFERS_PACKING_H_
