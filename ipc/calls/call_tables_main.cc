// call_tables: prints the call tables. `coverage` is docs/coverage.md; `list [PATTERN]` one line
// per call.
#include <cstdio>
#include <string_view>

#include "ipc/calls_text.h"

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "coverage" && argc == 2) {
    std::fputs(ipc::CoverageMarkdown().c_str(), stdout);
  } else if (what == "list" && argc <= 3) {
    std::fputs(ipc::CallsText(argc == 3 ? argv[2] : "").c_str(), stdout);
  } else {
    std::fputs("usage: call_tables coverage | list [PATTERN]\n", stderr);
    return 2;
  }
  return 0;
}
