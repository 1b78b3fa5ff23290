#include "ipc/job_options.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "ipc/text_field.h"

namespace ipc {
namespace {

using Json = nlohmann::json;

template <class Number>
bool Take(const Json& json, const char* name, Number* number) {
  const Json::const_iterator found = json.find(name);
  if (found == json.end()) return true;
  if (!found->is_number_unsigned()) return false;
  const uint64_t value = found->get<uint64_t>();
  *number = static_cast<Number>(value);
  return *number == value;
}

bool TakeDevices(const Json& json, SchedulingTerms* terms) {
  const Json::const_iterator found = json.find("devices");
  if (found == json.end()) return true;
  if (!found->is_array() || found->size() > kJobDevicesMax) return false;
  for (const Json& device : *found) {
    if (!device.is_number_unsigned() || device.get<uint64_t>() >= kJobDevicesMax) return false;
    terms->devices[terms->device_count++] = static_cast<uint8_t>(device.get<uint64_t>());
  }
  return true;
}

}  // namespace

std::optional<uint64_t> ParseDurationUs(std::string_view text) {
  absl::Duration duration;
  if (!absl::ParseDuration({text.data(), text.size()}, &duration)) return std::nullopt;
  const int64_t us = absl::ToInt64Microseconds(duration);
  if (us < 1 || static_cast<uint64_t>(us) > kDeadlineUsMax) return std::nullopt;
  return static_cast<uint64_t>(us);
}

bool ParseDevices(std::string_view text, SchedulingTerms* terms) {
  SchedulingTerms parsed;
  uint32_t number = 0;
  if (text.substr(0, 3) == "any") {
    const std::string_view count = text.substr(3);
    parsed.devices_wanted = 1;
    const bool counted = count.size() > 1 && count[0] == ':' &&
                         absl::SimpleAtoi(absl::string_view(count.data() + 1, count.size() - 1),
                                          &parsed.devices_wanted);
    if (!count.empty() && !counted) return false;
    if (parsed.devices_wanted < 1 || parsed.devices_wanted > kJobDevicesMax) return false;
  } else {
    for (const absl::string_view part :
         absl::StrSplit(absl::string_view(text.data(), text.size()), ',')) {
      if (!absl::SimpleAtoi(part, &number) || number >= kJobDevicesMax ||
          parsed.device_count == kJobDevicesMax) {
        return false;
      }
      parsed.devices[parsed.device_count++] = static_cast<uint8_t>(number);
      if (!SanitizeTerms(&parsed)) return false;  // named twice
    }
  }
  terms->devices_wanted = parsed.devices_wanted;
  terms->device_count = parsed.device_count;
  std::copy(std::begin(parsed.devices), std::end(parsed.devices), terms->devices);
  return true;
}

bool IsLabel(std::string_view text) {
  return text.size() < kLabelBytes && std::none_of(text.begin(), text.end(), [](char letter) {
           const unsigned char code = static_cast<unsigned char>(letter);
           return code < 0x20 || code == 0x7f;
         });
}

SchedulingTerms TermsOf(const Options& options) {
  SchedulingTerms terms;
  terms.priority = static_cast<uint32_t>(options.priority);
  terms.weight = static_cast<uint32_t>(options.weight);
  terms.deadline_us = options.deadline.empty() ? 0 : ParseDurationUs(options.deadline).value_or(0);
  terms.gang = static_cast<uint32_t>(options.gang);
  if (!options.gpus.empty()) (void)ParseDevices(options.gpus, &terms);
  control::SetText(terms.label, options.label);
  return terms;
}

nlohmann::ordered_json TermsJson(const SchedulingTerms& terms) {
  nlohmann::ordered_json json = {
      {"priority", terms.priority},
      {"weight", terms.weight},
      {"deadline_us", terms.deadline_us},
      {"gang", terms.gang},
      {"devices", std::vector<unsigned>(terms.devices, terms.devices + terms.device_count)},
      {"label", terms.label}};
  if (terms.devices_wanted != 0) json["devices_wanted"] = terms.devices_wanted;
  return json;
}

bool ReadTermsUntrusted(const Json& json, SchedulingTerms* terms) {
  if (!json.is_object()) return false;
  SchedulingTerms read;
  const bool numbers =
      Take(json, "priority", &read.priority) && Take(json, "weight", &read.weight) &&
      Take(json, "deadline_us", &read.deadline_us) && Take(json, "gang", &read.gang) &&
      Take(json, "devices_wanted", &read.devices_wanted);
  if (!numbers || !TakeDevices(json, &read)) return false;
  const Json::const_iterator label = json.find("label");
  if (label != json.end()) {
    if (!label->is_string() || !IsLabel(label->get<std::string>())) return false;
    control::SetText(read.label, label->get<std::string>());
  }
  if (!SanitizeTerms(&read)) return false;
  *terms = read;
  return true;
}

}  // namespace ipc
