// `laneway report --html FILE`: what happened lately as one page: jobs, who held which lane when,
// what each session did, times of iterations, and finished jobs. Thread safety: main(); ReportHtml
// is pure but for the time zone.
#pragma once

#include <string>
#include <vector>

#include "cli/request.h"
#include "cli/timeline.h"
#include "ipc/history.h"

namespace cli {

// `top_json` is the daemon's answer to "top".
std::string ReportHtml(const std::string& top_json, const JobTimeline& timeline,
                       const std::vector<ipc::HistoryRecord>& history);

int Report(const Request& request);

}  // namespace cli
