#include "ipc/environment.h"

#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace ipc {
namespace {

bool Names(const std::string& entry, const std::string& name) {
  return absl::StartsWith(entry, name + "=");
}

// All that ld.so knows.
const char* SeparatorsOf(std::string_view list) {
  if (list == "LD_PRELOAD") return ": ";
  return list == "PATH" ? ":" : ":;";
}

// The value without entries below `root`.
std::string WithoutEntriesBelow(const std::string& value, const char* separators,
                                const std::string& root) {
  std::vector<std::string> kept;
  for (const std::string& entry :
       std::vector<std::string>(absl::StrSplit(value, absl::ByAnyChar(separators)))) {
    if (entry != root && !absl::StartsWith(entry, root + "/")) kept.push_back(entry);
  }
  return absl::StrJoin(kept, ":");
}

}  // namespace

std::vector<std::string> WithoutFacades(const char* const* environment,
                                        const std::string& library_root) {
  std::vector<std::string> result;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string entry = *environment;
    if (Names(entry, kJobVariable) || Names(entry, kTransportVariable) ||
        Names(entry, kModeVariable) || Names(entry, kRecordVariable) ||
        Names(entry, kDriverVariable) || Names(entry, kCompilersVariable)) {
      continue;
    }
    bool dropped = false;
    for (const char* const list : {"LD_PRELOAD", "LD_LIBRARY_PATH", "PATH"}) {
      if (!Names(entry, list)) continue;
      const std::string rest = WithoutEntriesBelow(entry.substr(std::string_view(list).size() + 1),
                                                   SeparatorsOf(list), library_root);
      if (!rest.empty()) result.push_back(absl::StrCat(list, "=", rest));
      dropped = true;
    }
    if (!dropped) result.push_back(entry);
  }
  return result;
}

void SetVariable(std::vector<std::string>* environment, const std::string& name,
                 const std::string& value) {
  const std::string whole = absl::StrCat(name, "=", value);
  for (std::string& entry : *environment) {
    if (!Names(entry, name)) continue;
    entry = whole;
    return;
  }
  environment->push_back(whole);
}

std::vector<char*> PointersOf(std::vector<std::string>* environment) {
  std::vector<char*> pointers;
  for (std::string& entry : *environment) pointers.push_back(entry.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace ipc
