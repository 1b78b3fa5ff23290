// `laneway record` and `laneway serve`: what they start, and what they keep. Thread safety: main().
#pragma once

#include "cli/request.h"

namespace cli {

// Runs the program, and keeps the function that was recorded of it once the function, run alone,
// gives the same outputs. With a program that fails its exit code; 1 with a sentence when nothing
// was recorded.
int Record(const Request& request);

// Serves a recorded function until it is told to stop, as a job of the daemon.
int Serve(const Request& request);

}  // namespace cli
