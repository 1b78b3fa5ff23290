// Environment variables, each documented by its framework, that `laneway run` sets. With them
// frameworks work on Laneway, and their users set nothing. Thread safety: functions of their
// arguments.
#pragma once

#include <string>
#include <vector>

namespace cli {

// From caches of their own, which never give memory back, to the driver's allocation, which is a
// client's own business here. What `environment` sets already stays.
void UseStreamOrderedMemory(std::vector<std::string>* environment);

// Compilers that want machine code (Triton, XLA) run the stand-ins for ptxas and nvlink in `tools`,
// which pass PTX on: for the software GPU alone. A variable that is set already stays; PATH gets
// the directory in front, because a toolkit's tools make what the software GPU can't run.
void UseToolsOfSoftwareGpu(const std::string& tools, std::vector<std::string>* environment);

}  // namespace cli
