// On which terms a job runs, in words. Pure. Thread safety: stateless.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cli {

// Names those of a job's terms (ipc::TermsJson) that differ from the defaults: "priority 0, weight
// 300, due in 20 ms, gang of 2, devices 1,0". Empty when none differs.
std::string TermsText(const nlohmann::json& terms);

// "train.py (my label)".
std::string WithLabel(const std::string& program, const nlohmann::json& terms);

}  // namespace cli
