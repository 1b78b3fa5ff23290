// `laneway graph JOB`: one iteration of a running job as a dependency graph (cli/graph/). Thread
// safety: main().
#pragma once

#include "cli/request.h"

namespace cli {

int Graph(const Request& request);

}  // namespace cli
