// `laneway record`: runs a program, and keeps a loop of the program as a function. Thread safety:
// main().
#pragma once

#include "cli/request.h"

namespace cli {

// Runs the program, and keeps the function that was recorded of it once the function, run alone,
// gives the same outputs. With a program that fails its exit code; 1 with a sentence when nothing
// was recorded.
int Record(const Request& request);

}  // namespace cli
