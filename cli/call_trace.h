// `laneway trace JOB --calls`: has lanewayd trace the job's calls for a while, takes their events,
// and writes them with what the journal says of the same time. Thread safety: main().
#pragma once

#include "cli/request.h"

namespace cli {

int TraceCalls(const Request& request);

}  // namespace cli
