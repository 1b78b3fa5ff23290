// The figures of a simulation of serving, as text, JSON and HTML. Thread safety: stateless.
#pragma once

#include <string>
#include <vector>

#include "cli/sim/serving/simulation.h"

namespace sim::serving {

std::string ServedText(const std::vector<Served>& runs);
std::string ServedJson(const std::vector<Served>& runs);
// A page with the figures, and how many of the requests had at most which latency.
std::string ServedHtml(const std::string& title, const std::vector<Served>& runs);

}  // namespace sim::serving
