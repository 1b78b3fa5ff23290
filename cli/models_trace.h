// The histories of served models, as their fronts tell them (serve/history/told_history.h), in
// events of the trace format. A model is a process. In the process are a thread for the engines'
// lives, a thread for steps, counters of the load, and a thread per request with the request's
// phases. Steps that overlap, as steps of an engine of several stages do, have threads of their
// own. Slices of one thread nest, whatever a front says.
//
// Pure. Thread safety: stateless.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/trace_events.h"
#include "serve/history/told_history.h"

namespace cli {

// The time of everything that the fronts tell. REQUIRES: at least one.
TraceSpan WindowOf(const std::vector<serve::history::ToldHistory>& models);

// A list of JSON objects with commas between them. Times count from `origin_us`; of what lies in
// part outside of the window, the part within is told. REQUIRES: DecodeUntrusted has read `models`;
// the window does not begin before the origin.
std::string ModelsTraceJson(const std::vector<serve::history::ToldHistory>& models,
                            const TraceSpan& window, int64_t origin_us);

}  // namespace cli
