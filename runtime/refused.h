// What calls do that this runtime does not support. Includes no CUDA header (see refused.cc).
#pragma once

#include <atomic>

namespace runtime {

// Tells CUDA's log file (base/cuda_log_file.h), the first time (`*said` is false), that `name` is
// not supported and why; records cudaErrorNotSupported for cudaGetLastError and returns it.
// Thread safety: safe.
int Refuse(const char* name, const char* reason, std::atomic<bool>* said);

// The same on standard error: for what ends a program that looks at no result.
int RefuseAloud(const char* name, const char* reason, std::atomic<bool>* said);

}  // namespace runtime
