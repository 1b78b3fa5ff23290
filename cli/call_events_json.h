// The events of a job's calls in the JSON trace format (cli/trace_json.h): a track per thread of
// the client, one for the session's thread in the worker, one per stream of the device. Pure.
// Thread safety: stateless.
#pragma once

#include <cstdint>
#include <string>

#include "cli/call_events.h"

namespace cli {

// A list of JSON objects with commas between them. Times count from `origin_ns`. REQUIRES: Order()
// was called.
std::string CallsJson(const JobCalls& calls, int64_t origin_ns);

}  // namespace cli
