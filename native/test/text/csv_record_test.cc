#include "dense/text/csv_record.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "test/support/check.h"

namespace workbench {
namespace {

using Fields = std::vector<std::string>;

// The fields of a record; one that starts with "!" is an error.
Fields Split(std::string_view text, CsvRules rules = {}) {
  CsvRecord record(rules);
  if (const char* wrong = record.Split(text)) return {std::string("!") + wrong};
  return {record.fields().begin(), record.fields().end()};
}

TEST(FieldsStandBetweenDelimiters) {
  CHECK(Split("").empty());
  CHECK(Split("a") == Fields{"a"});
  CHECK((Split("a,b,,c") == Fields{"a", "b", "", "c"}));
  CHECK((Split(",") == Fields{"", ""}));
  CHECK((Split("a,") == Fields{"a", ""}));
  CHECK((Split("a\tb,c", {'\t', true}) == Fields{"a", "b,c"}));
  const char zeros[] = {'a', '\0', 'b', '\0'};
  CHECK((Split({zeros, sizeof(zeros)}, {'\0', true}) == Fields{"a", "b", ""}));
}

TEST(QuotesHoldFieldsTogether) {
  CHECK((Split("\"a,b\",c") == Fields{"a,b", "c"}));
  CHECK((Split("\"a\"\"b\",\"\"") == Fields{"a\"b", ""}));
  CHECK((Split("\"a\nb\",c") == Fields{"a\nb", "c"}));
  CHECK((Split("\"a,b\",c", {',', false}) == Fields{"\"a", "b\"", "c"}));
  CHECK(Split("a\"b")[0].find("!Unquoted fields") == 0);
  CHECK(Split("\"a\"b\"")[0].find("!Quote inside") == 0);
  CHECK(Split("\"ab")[0].find("!Quoted field has to end") == 0);
  CHECK(Split("\"")[0].find("!Quoted field has to end") == 0);
}

TEST(LineEndsAreAllowedInFrontOfFields) {
  CHECK((Split("\r\na,\nb") == Fields{"a", "b"}));
  CHECK(Split("\n").empty());
  CHECK(Split("a\n")[0].find("!Unquoted fields") == 0);
  CHECK(Split("a\nb", {',', false})[0].find("!Unquoted fields") == 0);
}

TEST(LongRecordsAreSplitAsShortOnes) {
  std::mt19937_64 random(1);
  CsvRecord record({});
  for (int i = 0; i < 2000; ++i) {
    Fields expected(1);
    std::string text;
    for (int c = random() % 200; c >= 0; --c) {
      if (random() % 8 == 0) {
        text += ',';
        expected.emplace_back();
      } else {
        text += static_cast<char>('a' + random() % 26);
        expected.back() += text.back();
      }
    }
    CHECK(record.Split(text) == nullptr);
    CHECK(Fields(record.fields().begin(), record.fields().end()) == expected);
  }
}

// Writes numbers as people do, and reads them back.
template <typename Number>
void CheckNumbers(Number (*read)(const char*)) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 200000; ++i) {
    std::string text = random() % 3 == 0 ? "-" : "";
    for (int digits = 1 + random() % 20; digits > 0; --digits) {
      text += static_cast<char>('0' + random() % 10);
      if (random() % 9 == 0 && text.find('.') == std::string::npos) text += '.';
    }
    Number value = 0;
    if (!ReadShortNumber(text, &value)) continue;
    const Number expected = read(text.c_str());
    CHECK(std::memcmp(&value, &expected, sizeof(value)) == 0);
  }
}

TEST(ShortNumbersAreExact) {
  CheckNumbers<float>([](const char* text) { return std::strtof(text, nullptr); });
  CheckNumbers<double>([](const char* text) { return std::strtod(text, nullptr); });
  CheckNumbers<int32_t>([](const char* text) { return static_cast<int32_t>(std::atol(text)); });
  CheckNumbers<int64_t>([](const char* text) { return static_cast<int64_t>(std::atol(text)); });
}

TEST(WhatIsNoShortNumberIsLeftToOthers) {
  for (const char* text : {"", "-", "--1", "+1", " 1", "1 ", "1.", ".5", ".", "1e3", "nan", "inf",
                           "0x1", "1.2.3", "12345678"}) {
    float value = 7;
    CHECK(!ReadShortNumber(text, &value));
    CHECK(value == 7);
  }
  int32_t whole = 0;
  CHECK(!ReadShortNumber("1.5", &whole) && !ReadShortNumber("2147483648", &whole));
  CHECK(ReadShortNumber("-42", &whole) && whole == -42);
}

}  // namespace
}  // namespace workbench
