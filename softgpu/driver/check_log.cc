#include "softgpu/driver/check_log.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"

namespace softgpu {
namespace {

constexpr size_t kLeaksShown = 10;

struct Kind {
  const char* one;
  const char* many;
};

// In the order of Finding::Kind.
constexpr Kind kKinds[] = {
    {"race", "races"},
    {"uninitialised read", "uninitialised reads"},
    {"misuse of a barrier", "misuses of barriers"},
};

std::string Count(size_t count, const Kind& kind) {
  return std::to_string(count) + " " + (count == 1 ? kind.one : kind.many);
}

bool MayLeak(const Allocation& allocation) {
  return allocation.kind == Allocation::Kind::kDevice ||
         allocation.kind == Allocation::Kind::kManaged ||
         allocation.kind == Allocation::Kind::kPinned;
}

std::string Leaks(size_t* count) {
  std::string text;
  uint64_t bytes = 0;
  *count = 0;
  for (const auto& allocation : Driver::Get().memory_map().Overlapping(0, ~uint64_t{0})) {
    if (!MayLeak(*allocation)) continue;
    ++*count;
    bytes += allocation->bytes;
    if (*count > kLeaksShown) continue;
    char line[160];
    std::snprintf(line, sizeof line, "softgpu check: leak of %llu bytes of %s memory at 0x%llx\n",
                  static_cast<unsigned long long>(allocation->bytes),
                  allocation->host() ? "pinned" : "device",
                  static_cast<unsigned long long>(allocation->base));
    text += line;
  }
  if (*count > kLeaksShown) {
    text += "softgpu check: " + std::to_string(*count - kLeaksShown) + " more leaks, " +
            std::to_string(bytes) + " bytes in all\n";
  }
  return text;
}

[[gnu::destructor]] void SayAtExit() {
  if (!Driver::Ready() || !Driver::Get().config().check) return;
  std::fputs(CheckLog::Get().Summary().c_str(), stderr);
}

}  // namespace

CheckLog& CheckLog::Get() {
  static CheckLog* const log = new CheckLog();
  return *log;
}

void CheckLog::Add(const Finding& finding) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto [first, last] = std::minmax(finding.line, finding.other_line);
    const std::tuple<Finding::Kind, std::string, int, int> key(finding.kind, finding.kernel, first,
                                                               last);
    if (launches_[key]++ > 0) return;
  }
  std::fprintf(stderr, "softgpu check: %s\n", finding.text.c_str());
  ErrorLog::Get().Add(CU_LOG_LEVEL_WARNING, finding.text);
}

std::string CheckLog::Summary() {
  size_t leaks = 0;
  std::string text = Leaks(&leaks), list;
  size_t counts[std::size(kKinds)] = {};
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [key, launches] : launches_) ++counts[static_cast<size_t>(std::get<0>(key))];
  }
  for (size_t k = 0; k < std::size(kKinds); ++k) {
    if (counts[k] > 0) list += (list.empty() ? "" : ", ") + Count(counts[k], kKinds[k]);
  }
  if (leaks > 0) list += (list.empty() ? "" : ", ") + Count(leaks, {"leak", "leaks"});
  return text + "softgpu check: " + (list.empty() ? "no findings" : list) + "\n";
}

}  // namespace softgpu
