// A simulation as a page: figures, who held which lane when, what each job waited for, memory over
// time, and the distributions of completion times. Thread safety: stateless.
#pragma once

#include <string>
#include <vector>

#include "cli/sim/engine.h"

namespace sim {

// REQUIRES: recorded outcomes of the same jobs, one per policy.
std::string OutcomesHtml(const std::string& title, const std::vector<Outcome>& outcomes);

}  // namespace sim
