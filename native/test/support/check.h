#ifndef WORKBENCH_TEST_SUPPORT_CHECK_H_
#define WORKBENCH_TEST_SUPPORT_CHECK_H_

// A test is `TEST(Name) { ... }` in a file whose program links check.cc; CHECK* end the program.

#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace workbench::test {

struct Case {
  const char* name;
  void (*run)();
};

inline std::vector<Case>& Cases() {
  static std::vector<Case> cases;
  return cases;
}

struct Register {
  Register(const char* name, void (*run)()) { Cases().push_back({name, run}); }
};

[[noreturn]] inline void Fail(const char* file, int line, const std::string& what) {
  std::cerr << file << ":" << line << ": " << what << std::endl;
  std::abort();
}

template <typename A, typename B>
void CheckEqual(const A& a, const B& b, const char* text, const char* file, int line) {
  if (a == b) return;
  std::cerr << "found " << a << ", expected " << b << "\n";
  Fail(file, line, text);
}

}  // namespace workbench::test

#define TEST(name)                                                     \
  static void Test##name();                                            \
  static ::workbench::test::Register register_##name(#name, &Test##name); \
  static void Test##name()

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) ::workbench::test::Fail(__FILE__, __LINE__, #condition); \
  } while (false)

#define CHECK_EQ(a, b) \
  ::workbench::test::CheckEqual((a), (b), #a " == " #b, __FILE__, __LINE__)

#define CHECK_HAS(text, part)                                                              \
  do {                                                                                     \
    const std::string checked_text = (text);                                               \
    if (checked_text.find(part) == std::string::npos) {                                    \
      ::workbench::test::Fail(__FILE__, __LINE__,                                          \
                              "'" + checked_text + "' lacks '" + std::string(part) + "'"); \
    }                                                                                      \
  } while (false)

#endif  // WORKBENCH_TEST_SUPPORT_CHECK_H_
