// laneway kernels FILE|JOB: what each kernel of a file, or of the modules of a running job, reads,
// writes and updates (replay/kernel_report.h). Thread safety: main().
#pragma once

#include <string>

#include "cli/request.h"
#include "replay/kernel_report.h"

namespace cli {

int Kernels(const Request& request);

// A kernel as people read it. Pure.
std::string KernelText(const replay::KernelReport& kernel);
// All that a file holds, as one JSON object. Pure.
std::string KernelsJson(const replay::FileReport& file);

}  // namespace cli
