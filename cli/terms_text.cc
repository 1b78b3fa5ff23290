#include "cli/terms_text.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/table.h"
#include "ipc/scheduling_terms.h"

namespace cli {
namespace {

using Json = nlohmann::json;

uint64_t Number(const Json& terms, const char* name, uint64_t otherwise) {
  return terms.is_object() ? terms.value(name, otherwise) : otherwise;
}

}  // namespace

std::string TermsText(const Json& terms) {
  const ipc::SchedulingTerms usual;
  std::vector<std::string> words;
  const uint64_t priority = Number(terms, "priority", usual.priority);
  const uint64_t weight = Number(terms, "weight", usual.weight);
  const uint64_t deadline_us = Number(terms, "deadline_us", 0);
  const uint64_t gang = Number(terms, "gang", 0);
  if (priority != usual.priority) words.push_back(absl::StrCat("priority ", priority));
  if (weight != usual.weight) words.push_back(absl::StrCat("weight ", weight));
  if (deadline_us != 0) words.push_back(absl::StrCat("due in ", TimeText(deadline_us)));
  if (gang >= 2) words.push_back(absl::StrCat("gang of ", gang));
  if (terms.is_object() && terms.contains("devices") && !terms["devices"].empty()) {
    const std::vector<unsigned> devices = terms["devices"].get<std::vector<unsigned>>();
    words.push_back(
        absl::StrCat(devices.size() == 1 ? "device " : "devices ", absl::StrJoin(devices, ",")));
  }
  return absl::StrJoin(words, ", ");
}

std::string WithLabel(const std::string& program, const Json& terms) {
  const std::string label = terms.is_object() ? terms.value("label", "") : "";
  return Printable(label.empty() ? program : absl::StrCat(program, " (", label, ")"));
}

}  // namespace cli
