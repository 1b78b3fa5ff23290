// `laneway serve`: a recorded function on a local socket, or language models behind an HTTP API.
// Thread safety: main().
#pragma once

#include "cli/request.h"

namespace cli {

// Serves until it is told to stop, as a job of the daemon.
int Serve(const Request& request);

}  // namespace cli
