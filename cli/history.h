// `laneway history`: finished jobs, oldest first, whether or not a daemon runs. Thread safety:
// main(); HistoryText is pure but for the time zone.
#pragma once

#include <string>
#include <vector>

#include "cli/request.h"
#include "ipc/history.h"

namespace cli {

// A line per job under a head line.
std::string HistoryText(const std::vector<ipc::HistoryRecord>& records);

// What $STATE holds, the older file first; lines that are none are told on standard error.
absl::StatusOr<std::vector<ipc::HistoryRecord>> ReadHistory();

int History(const Request& request);

}  // namespace cli
