#include "ipc/calls_text.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace ipc {

namespace {

struct Chapter {
  Library library;
  const char* title;
};
constexpr Chapter kChapters[] = {{Library::kDriver, "Driver (libcuda.so.1)"},
                                 {Library::kCublas, "cuBLAS (libcublas.so.13)"},
                                 {Library::kCublasLt, "cublasLt (libcublasLt.so.13)"}};

std::vector<std::string> NamesWith(Library library, Route route) {
  std::vector<std::string> names;
  for (const Row& row : RowsOf(library)) {
    if (row.route == route) names.push_back(absl::StrCat("`", std::string(row.name), "`"));
  }
  return names;
}

void AppendNames(const char* what, Library library, Route route, std::string* page) {
  const std::vector<std::string> names = NamesWith(library, route);
  if (names.empty()) return;
  absl::StrAppend(page, "**", what, "** (", names.size(), "): ", absl::StrJoin(names, ", "),
                  "\n\n");
}

// Denied calls by their reason, reasons in the order of their first row.
void AppendDenied(Library library, std::string* page) {
  std::vector<std::string_view> reasons;
  std::map<std::string_view, std::vector<std::string>> names;
  for (const Row& row : RowsOf(library)) {
    if (row.route != Route::kDeny) continue;
    std::vector<std::string>& of_reason = names[row.reason];
    if (of_reason.empty()) reasons.push_back(row.reason);
    of_reason.push_back(absl::StrCat("`", std::string(row.name), "`"));
  }
  if (reasons.empty()) return;
  absl::StrAppend(page,
                  "**Denied**, each with CUDA's \"not supported\" error and this reason:\n\n");
  for (const std::string_view reason : reasons) {
    absl::StrAppend(page, "- ", std::string(reason), " (", names[reason].size(),
                    "): ", absl::StrJoin(names[reason], ", "), "\n");
  }
  absl::StrAppend(page, "\n");
}

}  // namespace

Coverage CoverageOf(Library library) {
  Coverage coverage;
  for (const Row& row : RowsOf(library)) {
    switch (row.route) {
      case Route::kSync:
      case Route::kAsync:
        ++coverage.forwarded;
        break;
      case Route::kLocal:
        ++coverage.local;
        break;
      case Route::kDeny:
        ++coverage.denied;
        break;
    }
  }
  return coverage;
}

std::string CoverageMarkdown() {
  std::string page =
      "# Which calls work\n\n"
      "Made from the tables in ipc/calls by `call_tables coverage`; a test fails when this page is "
      "stale.\n"
      "*Queued* calls return at once and run in stream order; a *round trip* waits for the "
      "worker's\n"
      "answer; *local* ones are answered in the program's process, with messages of their own "
      "where they\n"
      "need any.\n\n"
      "| library | calls | forwarded | local | denied |\n|---|---|---|---|---|\n";
  for (const Chapter& chapter : kChapters) {
    const Coverage coverage = CoverageOf(chapter.library);
    absl::StrAppendFormat(&page, "| %s | %d | %d | %d | %d |\n", chapter.title, coverage.rows(),
                          coverage.forwarded, coverage.local, coverage.denied);
  }
  for (const Chapter& chapter : kChapters) {
    absl::StrAppend(&page, "\n## ", chapter.title, "\n\n");
    AppendNames("Queued", chapter.library, Route::kAsync, &page);
    AppendNames("Round trip", chapter.library, Route::kSync, &page);
    AppendNames("Local", chapter.library, Route::kLocal, &page);
    AppendDenied(chapter.library, &page);
    page.pop_back();
  }
  return page;
}

std::string CallsText(std::string_view pattern) {
  std::string text;
  for (size_t i = 0; i < kLibraries; ++i) {
    for (const Row& row : RowsOf(static_cast<Library>(i))) {
      if (row.name.find(pattern) == std::string_view::npos) continue;
      const std::string_view detail = row.route == Route::kDeny ? row.reason : row.roles;
      absl::StrAppendFormat(
          &text, "%-8s %-6s %-44s %s\n", std::string(NameOf(static_cast<Library>(i))),
          std::string(NameOf(row.route)), std::string(row.name), std::string(detail));
    }
  }
  return text;
}

}  // namespace ipc
