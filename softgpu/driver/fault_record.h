// The first fault of the process: which stream it stopped, and in which words.
// Thread safety: all functions from any thread.
#pragma once

#include <cuda.h>

#include <string>

namespace softgpu {

// Says what stopped a stream: in the error log always, on stderr for the first fault of the
// process, which softgpuGetFault keeps.
void ReportFault(CUresult code, CUstream stream, const std::string& text);

}  // namespace softgpu
