// What calls do that this runtime does not support. Includes no CUDA header (see refused.cc).
#pragma once

#include <atomic>

namespace runtime {

// Says on stderr, the first time (`*said` is false), that `name` is not supported and why; records
// cudaErrorNotSupported for cudaGetLastError and returns it.
// Thread safety: safe.
int Refuse(const char* name, const char* reason, std::atomic<bool>* said);

}  // namespace runtime
