// The terms of a job as people write them, and as `laneway run` tells them to lanewayd. Thread
// safety: functions without state.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "ipc/options.h"
#include "ipc/scheduling_terms.h"

namespace ipc {

// "500us", "20ms", "90s", "2h", "1h30m": microseconds, from 1 to a year.
std::optional<uint64_t> ParseDurationUs(std::string_view text);

// "0", "2,0": these devices. "any", "any:2": so many. Writes both members of `terms`, or nothing.
bool ParseDevices(std::string_view text, SchedulingTerms* terms);

// Fits, and has no control characters.
bool IsLabel(std::string_view text);

// REQUIRES: options that SetOption() took.
SchedulingTerms TermsOf(const Options& options);

// {"priority", "weight", "deadline_us", "gang", "devices", "label"}; "devices_wanted" when some are
// wanted.
nlohmann::ordered_json TermsJson(const SchedulingTerms& terms);

// False for what TermsJson() never writes. A member that is missing is as by default.
bool ReadTermsUntrusted(const nlohmann::json& json, SchedulingTerms* terms);

}  // namespace ipc
