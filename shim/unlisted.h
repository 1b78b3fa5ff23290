// Refuses calls whose names a library exports without a row in the call tables.
#pragma once

#include <cstdint>

namespace shim {

// Tells CUDA's log file the reason, once for each name (base/cuda_log_file.h). Returns the status,
// which is the library's own for "not supported". Thread safety: any thread.
uint32_t DenyUnlisted(const char* name, const char* reason, uint32_t status);

}  // namespace shim
