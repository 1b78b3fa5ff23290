// What `laneway sim` prints: tables for people, JSON for programs, and Perfetto's trace format.
// Thread safety: stateless.
#pragma once

#include <string>
#include <vector>

#include "cli/sim/engine.h"
#include "cli/sim/statistics.h"

namespace sim {

// A line per policy.
std::string SummaryText(const std::vector<Summary>& summaries);
// A line per job, in the order of arrival.
std::string JobsTableText(const Outcome& outcome);

// {"policies": [{"policy": "fifo", "makespan_s": ..., "jobs": [...]}]}
std::string SummaryJson(const std::vector<Summary>& summaries,
                        const std::vector<Outcome>& outcomes);

// The JSON trace format that ui.perfetto.dev opens: a process per policy, a thread per lane, a
// slice per uninterrupted turn, memory as counters. REQUIRES: recorded outcomes.
std::string PerfettoJson(const std::vector<Outcome>& outcomes);

}  // namespace sim
