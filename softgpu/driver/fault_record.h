// The first fault of the process: which stream it stopped, and in which words.
// Thread safety: all functions from any thread.
#pragma once

#include <cuda.h>

#include <string>

namespace softgpu {

// Keeps the first; later ones change nothing.
void RecordFault(CUresult code, CUstream stream, const std::string& text);

}  // namespace softgpu
