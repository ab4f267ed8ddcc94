#include "transfers/packing.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace workbench {
namespace {

constexpr int kNumberBits = 7;
// More dimensions than a tensor has.
constexpr uint64_t kMostSizes = 254;

// Seven bits a byte, the lowest first; the eighth says that more follow.
void PutNumber(uint64_t number, std::string* to) {
  for (; number >> kNumberBits != 0; number >>= kNumberBits) {
    to->push_back(static_cast<char>((number & 0x7f) | 0x80));
  }
  to->push_back(static_cast<char>(number));
}

// At least one byte, so that a count of elements is bounded by the bytes that hold them.
int WidthOf(uint64_t largest) {
  if (largest >> 8 == 0) return 1;
  if (largest >> 16 == 0) return 2;
  return largest >> 32 == 0 ? 4 : 8;
}

template <typename Integer>
int Narrowest(const Integer* values, int64_t count, int64_t* least) {
  if (count == 0) return 1;
  const auto [low, high] = std::minmax_element(values, values + count);
  *least = *low;
  return WidthOf(static_cast<uint64_t>(static_cast<int64_t>(*high)) -
                 static_cast<uint64_t>(*least));
}

template <typename Kept, typename Integer>
void Narrow(const Integer* values, int64_t count, int64_t least, char* to) {
  for (int64_t i = 0; i < count; ++i) {
    const Kept kept = static_cast<Kept>(static_cast<uint64_t>(static_cast<int64_t>(values[i])) -
                                        static_cast<uint64_t>(least));
    std::memcpy(to + i * sizeof(Kept), &kept, sizeof(Kept));
  }
}

template <typename Kept, typename Integer>
void Widen(const char* from, int64_t count, int64_t least, Integer* values) {
  for (int64_t i = 0; i < count; ++i) {
    Kept kept;
    std::memcpy(&kept, from + i * sizeof(Kept), sizeof(Kept));
    values[i] = static_cast<Integer>(static_cast<uint64_t>(kept) + static_cast<uint64_t>(least));
  }
}

template <typename Integer>
void NarrowTo(int width, const Integer* values, int64_t count, int64_t least, char* to) {
  if (width == 1) return Narrow<uint8_t>(values, count, least, to);
  if (width == 2) return Narrow<uint16_t>(values, count, least, to);
  if (width == 4) return Narrow<uint32_t>(values, count, least, to);
  Narrow<uint64_t>(values, count, least, to);
}

template <typename Integer>
void WidenFrom(int width, const char* from, int64_t count, int64_t least, Integer* values) {
  if (width == 1) return Widen<uint8_t>(from, count, least, values);
  if (width == 2) return Widen<uint16_t>(from, count, least, values);
  if (width == 4) return Widen<uint32_t>(from, count, least, values);
  Widen<uint64_t>(from, count, least, values);
}

}  // namespace

void Packing::Add(const void* data, int64_t count, Elements elements,
                  const std::vector<int64_t>& sizes) {
  Part part{static_cast<const char*>(data), count, elements, 0, elements.bytes, {}};
  PutNumber(sizes.size(), &part.head);
  for (int64_t size : sizes) PutNumber(static_cast<uint64_t>(size), &part.head);
  if (elements.integers) {
    part.width = elements.bytes == 4
                     ? Narrowest(static_cast<const int32_t*>(data), count, &part.least)
                     : Narrowest(static_cast<const int64_t*>(data), count, &part.least);
    PutNumber(part.width, &part.head);
    PutNumber(static_cast<uint64_t>(part.least), &part.head);
  }
  bytes_ += static_cast<int64_t>(part.head.size()) + count * part.width;
  parts_.push_back(std::move(part));
}

void Packing::Write(char* to) const {
  for (const Part& part : parts_) {
    to = std::copy(part.head.begin(), part.head.end(), to);
    const int64_t bytes = part.count * part.width;
    if (!part.elements.integers) {
      // An empty tensor may have no address.
      if (bytes > 0) std::memcpy(to, part.data, bytes);
    } else if (part.elements.bytes == 4) {
      NarrowTo(part.width, reinterpret_cast<const int32_t*>(part.data), part.count, part.least, to);
    } else {
      NarrowTo(part.width, reinterpret_cast<const int64_t*>(part.data), part.count, part.least, to);
    }
    to += bytes;
  }
}

bool Unpacking::ReadNumber(uint64_t* number) {
  *number = 0;
  for (int shift = 0; shift < 64; shift += kNumberBits) {
    if (at_ == end_) return false;
    const uint64_t byte = static_cast<unsigned char>(*at_++);
    *number |= (byte & 0x7f) << shift;
    if (byte >> kNumberBits == 0) return true;
  }
  return false;
}

bool Unpacking::ReadSizes(Elements elements, std::vector<int64_t>* sizes) {
  elements_ = elements;
  width_ = elements.bytes;
  least_ = 0;
  sizes->clear();
  uint64_t rank = 0, number = 0;
  if (!ReadNumber(&rank) || rank > kMostSizes) return false;
  for (uint64_t i = 0; i < rank; ++i) {
    if (!ReadNumber(&number) || number > INT64_MAX) return false;
    sizes->push_back(static_cast<int64_t>(number));
  }
  if (!elements.integers) return true;
  if (!ReadNumber(&number) || (number != 1 && number != 2 && number != 4 && number != 8)) {
    return false;
  }
  width_ = static_cast<int>(number);
  if (!ReadNumber(&number)) return false;
  least_ = static_cast<int64_t>(number);
  return true;
}

bool Unpacking::Holds(int64_t count) const { return count >= 0 && count <= (end_ - at_) / width_; }

void Unpacking::ReadElements(int64_t count, void* to) {
  const int64_t bytes = count * width_;
  if (!elements_.integers) {
    if (bytes > 0) std::memcpy(to, at_, bytes);
  } else if (elements_.bytes == 4) {
    WidenFrom(width_, at_, count, least_, static_cast<int32_t*>(to));
  } else {
    WidenFrom(width_, at_, count, least_, static_cast<int64_t*>(to));
  }
  at_ += bytes;
}

}  // namespace workbench
