// The servers of models (laneway-serve) that run beside the daemon, and what they tell of their
// models and requests (serve/front/front_report.h). Thread safety: stateless.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "serve/history/told_history.h"

namespace cli {

// Each front's answer to the question, of those that have a socket in the runtime directory. A
// front that is gone, or that gives no JSON object within a second, is left out.
std::vector<nlohmann::json> AskFronts(const std::string& runtime_dir,
                                      const nlohmann::json& question);

// The daemon's answer to "top" or "status" with "models": those of all fronts, each with the "url"
// and "pid" of its front.
std::string WithModels(const std::string& daemon_json, const std::string& runtime_dir);

// The history of each model of each front; of the fronts of this job alone, unless it is 0. A front
// whose answer makes no sense is left out.
std::vector<serve::history::ToldHistory> AskForHistories(const std::string& runtime_dir,
                                                         uint64_t job);

}  // namespace cli
