#include "test/support/check.h"

int main() {
  for (const workbench::test::Case& test : workbench::test::Cases()) {
    std::cout << test.name << std::endl;
    test.run();
  }
  std::cout << workbench::test::Cases().size() << " tests passed" << std::endl;
  return 0;
}
