#ifndef WORKBENCH_DENSE_TEXT_CSV_RECORD_H_
#define WORKBENCH_DENSE_TEXT_CSV_RECORD_H_

// The fields of a line of text, as DecodeCSV reads them.

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace workbench {

struct CsvRules {
  char delimiter = ',';
  bool quotes = true;  // whether a field may stand in double quotes
};

// Splits one record after the other, with the same memory.
class CsvRecord {
 public:
  explicit CsvRecord(CsvRules rules);

  // Returns what is wrong with a record, null if nothing is.
  const char* Split(std::string_view record);

  // Of the last record, which must live as long; an empty one has none.
  const std::vector<std::string_view>& fields() const { return fields_; }

 private:
  // Whether the record has nothing but fields and delimiters.
  bool SplitPlain(std::string_view record);
  const char* SplitAny(std::string_view record);
  const char* Unquoted(std::string_view record, size_t* at);
  const char* Quoted(std::string_view record, size_t* at);

  const CsvRules rules_;
  const bool has_plain_;  // whether the delimiter is none of the characters that mean something
  std::vector<std::string_view> fields_;
  std::deque<std::string> unquoted_;  // fields without their quotes
};

// The value of a field, where it is written as digits, with a "-" in front, and for floats a point
// among them, and few enough to be exact; false says nothing of the field. For float, double,
// int32_t and int64_t.
template <typename Number>
bool ReadShortNumber(std::string_view field, Number* value);

}  // namespace workbench

#endif  // WORKBENCH_DENSE_TEXT_CSV_RECORD_H_
