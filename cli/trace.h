// `laneway trace [JOB] [--out FILE]`: what lanewayd and the servers of models have seen lately as a
// Perfetto timeline. With --calls: cli/call_trace.h. Thread safety: main().
#pragma once

#include <vector>

#include "cli/request.h"
#include "cli/timeline.h"

namespace cli {

int Trace(const Request& request);

// The whole journal of the daemon.
absl::StatusOr<std::vector<JournalEvent>> FetchJournal(const Request& request);

// Writes to `path`, or to standard output when it is empty. The error is a sentence, and no half of
// a file is left.
absl::Status WriteText(const std::string& path, const std::string& text);

}  // namespace cli
