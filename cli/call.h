// `laneway call`: one request to a served function. Thread safety: main().
#pragma once

#include "cli/request.h"

namespace cli {

// Reads the inputs from .npy files, and writes the outputs to such files, or prints them.
int CallFunction(const Request& request);

}  // namespace cli
