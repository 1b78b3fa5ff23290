// Environment variables, each documented by its framework, that `laneway run` sets. With them
// frameworks work on Laneway, and their users set nothing. Thread safety: functions of their
// arguments.
#pragma once

#include <string>
#include <vector>

#include "ipc/options.h"

namespace cli {

// Of frameworks' device memory, as "NAME=value": all but what `environment` sets already.
// Frameworks leave caches of their own, which never give memory back, for the driver's allocation,
// which is a client's own business here.
std::vector<std::string> MemoryVariables(const std::vector<std::string>& environment);

// Besides, for a job whose iterations are replayed. Launches that write the same bytes in turn
// can't run beside each other, so frameworks put each temporary of a step into bytes of its own
// (docs/replay.md). That takes more memory.
std::vector<std::string> ReplayVariables(const std::vector<std::string>& environment);

// True when the options let the job's iterations be replayed.
bool Replays(const ipc::Options& options);

// Compilers that want machine code (Triton, XLA) run the stand-ins for ptxas and nvlink in `tools`,
// which pass PTX on: for the software GPU alone. A variable that is set already stays; PATH gets
// the directory in front, because a toolkit's tools make what the software GPU can't run.
void UseToolsOfSoftwareGpu(const std::string& tools, std::vector<std::string>* environment);

}  // namespace cli
