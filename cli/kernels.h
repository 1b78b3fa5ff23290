// laneway kernels FILE|JOB: what each kernel of a file, or of the modules of a running job, reads,
// writes and updates (replay/kernel_report.h), and how often a job launches it. Thread safety:
// main().
#pragma once

#include "cli/request.h"

namespace cli {

int Kernels(const Request& request);

}  // namespace cli
