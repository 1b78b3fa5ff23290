// Refuses calls whose names are exported without a row in the call table.
#pragma once

namespace softgpu {

// Logs the reason; CUDA_ERROR_NOT_SUPPORTED, or what each call is told before cuInit and after a
// fault. Thread safety: any thread.
unsigned RefuseUnlisted(const char* name, const char* reason);

}  // namespace softgpu
