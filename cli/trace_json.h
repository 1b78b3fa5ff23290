// A timeline in the JSON trace format that ui.perfetto.dev and chrome://tracing open: a process per
// job, in it threads per session for what it holds, iterates, waits for and swaps; a process of
// lanes with a thread per lane that shows its holders; marks as instants, lane sizes as counters.
// Times count from the timeline's begin. `more`: further events of the format, with commas between
// them (cli/call_events_json.h). Pure. Thread safety: stateless.
#pragma once

#include <string>

#include "cli/timeline.h"

namespace cli {

std::string TraceJson(const JobTimeline& timeline, const std::string& more = "");

}  // namespace cli
