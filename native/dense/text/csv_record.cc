#include "dense/text/csv_record.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace workbench {
namespace {

constexpr const char* kUnquoted = "Unquoted fields cannot have quotes/CRLFs inside";
constexpr const char* kEscape = "Quote inside a string has to be escaped by another quote";
constexpr const char* kEnd = "Quoted field has to end with quote followed by delim or end";

bool EndsLine(char c) { return c == '\n' || c == '\r'; }

// As many characters as are compared at once.
using Characters = uint8_t __attribute__((vector_size(16), may_alias));

// A bit of each character that is the same as another one.
uint64_t Equal(Characters some, Characters other) {
  const Characters same = reinterpret_cast<Characters>(some == other);
#if defined(__SSE2__)
  return static_cast<uint16_t>(
      __builtin_ia32_pmovmskb128(reinterpret_cast<char __attribute__((vector_size(16)))>(same)));
#else
  uint64_t bits = 0;
  for (int i = 0; i < 16; ++i) bits |= uint64_t{same[i] & 1} << i;
  return bits;
#endif
}

Characters All(char c) { return Characters{} + static_cast<uint8_t>(c); }

// Powers of ten, exact in a double, and those of fewer digits than a float has in a float too.
constexpr double kTens[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6, 1e7,
                            1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14};

// Decimal digits of which every number is exact; divided by an exact one it is rounded once.
template <typename Number>
constexpr size_t kExactDigits = sizeof(Number) == 4 ? 7 : 15;
template <>
constexpr size_t kExactDigits<int32_t> = 9;
template <>
constexpr size_t kExactDigits<int64_t> = 18;

}  // namespace

CsvRecord::CsvRecord(CsvRules rules)
    : rules_(rules), has_plain_(!EndsLine(rules.delimiter) && rules.delimiter != '"') {}

const char* CsvRecord::Split(std::string_view record) {
  fields_.clear();
  unquoted_.clear();
  if (record.empty() || (has_plain_ && SplitPlain(record))) return nullptr;
  fields_.clear();
  return SplitAny(record);
}

bool CsvRecord::SplitPlain(std::string_view record) {
  const Characters delimiter = All(rules_.delimiter), line = All('\n'), carriage = All('\r');
  // Where quotes mean nothing, a line's end stands for them.
  const Characters quote = All(rules_.quotes ? '"' : '\n');
  size_t begin = 0;
  for (size_t at = 0; at < record.size(); at += sizeof(Characters)) {
    Characters some = {};
    const size_t left = record.size() - at;
    std::memcpy(&some, record.data() + at, left < sizeof(some) ? left : sizeof(some));
    // What lies behind the record is no delimiter, even where zeros are.
    const uint64_t inside = left < sizeof(some) ? (uint64_t{1} << left) - 1 : ~uint64_t{0};
    if (Equal(some, line) | Equal(some, carriage) | Equal(some, quote)) return false;
    for (uint64_t ends = Equal(some, delimiter) & inside; ends; ends &= ends - 1) {
      const size_t end = at + __builtin_ctzll(ends);
      fields_.push_back(record.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  fields_.push_back(record.substr(begin));
  return true;
}

const char* CsvRecord::SplitAny(std::string_view record) {
  size_t at = 0;
  while (at < record.size()) {
    if (EndsLine(record[at])) {
      ++at;
      continue;
    }
    const bool quoted = rules_.quotes && record[at] == '"';
    const char* wrong = quoted ? Quoted(record, &at) : Unquoted(record, &at);
    if (wrong != nullptr) return wrong;
  }
  if (record.back() == rules_.delimiter) fields_.emplace_back();
  return nullptr;
}

const char* CsvRecord::Unquoted(std::string_view record, size_t* at) {
  const size_t begin = *at;
  size_t end = begin;
  for (; end < record.size() && record[end] != rules_.delimiter; ++end) {
    if (EndsLine(record[end]) || (rules_.quotes && record[end] == '"')) return kUnquoted;
  }
  fields_.push_back(record.substr(begin, end - begin));
  *at = end + 1;
  return nullptr;
}

const char* CsvRecord::Quoted(std::string_view record, size_t* at) {
  std::string& field = unquoted_.emplace_back();
  const size_t last = record.size() - 1;
  size_t next = *at + 1;
  while (next < last && (record[next] != '"' || record[next + 1] != rules_.delimiter)) {
    if (record[next] == '"') {
      if (record[++next] != '"') return kEscape;
    }
    field += record[next++];
  }
  const bool ends = next < record.size() && record[next] == '"' &&
                    (next == last || record[next + 1] == rules_.delimiter);
  if (!ends) return kEnd;
  fields_.push_back(field);
  *at = next + 2;
  return nullptr;
}

template <typename Number>
bool ReadShortNumber(std::string_view field, Number* value) {
  const bool negative = !field.empty() && field[0] == '-';
  if (negative) field.remove_prefix(1);
  const bool has_point = std::is_floating_point_v<Number> && field.size() > 2 &&
                         field.find('.', 1) < field.size() - 1;
  if (field.empty() || field.size() - has_point > kExactDigits<Number>) return false;
  int64_t digits = 0;
  size_t behind = 0;  // digits behind the point
  bool passed = false;
  for (char c : field) {
    if (c == '.' && has_point && !passed) {
      passed = true;
      continue;
    }
    if (c < '0' || c > '9') return false;
    digits = digits * 10 + (c - '0');
    behind += passed;
  }
  Number found = static_cast<Number>(digits);
  if constexpr (std::is_floating_point_v<Number>) found /= static_cast<Number>(kTens[behind]);
  *value = negative ? -found : found;
  return true;
}

template bool ReadShortNumber(std::string_view, float*);
template bool ReadShortNumber(std::string_view, double*);
template bool ReadShortNumber(std::string_view, int32_t*);
template bool ReadShortNumber(std::string_view, int64_t*);

}  // namespace workbench
