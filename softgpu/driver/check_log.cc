#include "softgpu/driver/check_log.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "base/mutex.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/ptx/ir.h"

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
    {"access out of bounds", "accesses out of bounds"},
};

std::string Count(size_t count, const Kind& kind) {
  return std::to_string(count) + " " + (count == 1 ? kind.one : kind.many);
}

bool MayLeak(const Allocation& allocation) {
  return allocation.kind == Allocation::Kind::kDevice ||
         allocation.kind == Allocation::Kind::kManaged ||
         allocation.kind == Allocation::Kind::kPinned;
}

// The program's innermost call that made the allocation: "main in ./program+0x1234".
std::string SiteOf(const Allocation& allocation) {
  Dl_info ours;
  if (dladdr(reinterpret_cast<void*>(&MayLeak), &ours) == 0) return {};
  for (void* frame : allocation.site) {
    Dl_info info;
    void* const call = static_cast<char*>(frame) - 1;  // the frame is where it returns to
    if (dladdr(call, &info) == 0 || info.dli_fbase == ours.dli_fbase) continue;
    if (std::strstr(info.dli_fname, "libcudart") != nullptr) continue;
    char offset[32];
    std::snprintf(
        offset, sizeof offset, "+0x%zx",
        static_cast<size_t>(static_cast<char*>(call) - static_cast<char*>(info.dli_fbase)));
    const std::string function =
        info.dli_sname == nullptr ? "" : ptx::ReadableName(info.dli_sname) + " in ";
    return "\n    allocated by " + function + info.dli_fname + offset;
  }
  return {};
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
    std::snprintf(line, sizeof line, "softgpu check: leak of %llu bytes of %s memory at 0x%llx",
                  static_cast<unsigned long long>(allocation->bytes), allocation->kind_name(),
                  static_cast<unsigned long long>(allocation->base));
    text += line + SiteOf(*allocation) + "\n";
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
  const unsigned code = Driver::Get().config().check_exit;
  if (code == 0 || !CheckLog::Get().FoundSomething()) return;
  std::fflush(nullptr);
  _exit(static_cast<int>(code));
}

}  // namespace

CheckLog& CheckLog::Get() {
  static CheckLog* const log = new CheckLog();
  return *log;
}

void CheckLog::Add(const Finding& finding) {
  {
    base::MutexLock lock(&mutex_);
    const auto [first, last] = std::minmax(finding.line, finding.other_line);
    const std::tuple<Finding::Kind, std::string, int, int> key(finding.kind, finding.kernel, first,
                                                               last);
    if (launches_[key]++ > 0) return;
  }
  std::fprintf(stderr, "softgpu check: %s\n", finding.text.c_str());
  ErrorLog::Get().Add(CU_LOG_LEVEL_WARNING, finding.text);
}

void CheckLog::AddFault() {
  base::MutexLock lock(&mutex_);
  ++faults_;
}

std::string CheckLog::Summary() {
  base::MutexLock lock(&mutex_);
  size_t leaks = 0;
  std::string list;
  // After a fault nothing can be freed.
  const std::string text = faults_ == 0 ? Leaks(&leaks) : "";
  const auto add = [&](size_t count, const Kind& kind) {
    if (count > 0) list += (list.empty() ? "" : ", ") + Count(count, kind);
  };
  add(faults_, {"fault", "faults"});
  for (size_t k = 0; k < std::size(kKinds); ++k) {
    size_t places = 0, launches = 0;
    for (const auto& [key, times] : launches_) {
      if (static_cast<size_t>(std::get<0>(key)) != k) continue;
      ++places;
      launches += static_cast<size_t>(times);
    }
    add(places, kKinds[k]);
    if (launches > places) list += " in " + std::to_string(launches) + " launches";
  }
  add(leaks, {"leak", "leaks"});
  found_ = !list.empty();
  return text + "softgpu check: " + (list.empty() ? "no findings" : list) + "\n";
}

}  // namespace softgpu
