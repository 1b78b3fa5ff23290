// Served models and their requests, for people: parts of `laneway top`, `status` and `why`. From
// the answers of fronts (cli/fronts.h), whose every field may lack. Pure. Thread safety: stateless.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace cli {

// A line a model under a head line. Empty without models.
std::string ModelsText(const nlohmann::json& models);

// A line a request of one front's answer to "why", and how many it has left out.
std::string RequestsText(const nlohmann::json& answer);

}  // namespace cli
