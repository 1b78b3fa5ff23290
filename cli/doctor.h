// `laneway doctor`: what stands in the way, and what to do about it. Thread safety: used in main().
#pragma once

#include "ipc/options.h"

namespace cli {

// Prints a line per finding, with its remedy below. Returns 1 when there is a problem, else 0.
int Doctor(const ipc::Options& options);

}  // namespace cli
