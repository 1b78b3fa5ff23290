// `laneway pause|resume|evict|limit JOB`: what changes a job that runs. Thread safety: main().
#pragma once

#include "cli/request.h"

namespace cli {

int Steer(const Request& request);

}  // namespace cli
