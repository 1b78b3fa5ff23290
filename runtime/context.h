// Which context a call uses.
//
// The runtime has one primary context per device, retained at the first call that needs it. A
// context that the program made current through the driver interface is used instead. Each context
// has a key, which no other context of the process ever gets, unlike the handle. Modules that are
// loaded into a context (registration.h) are remembered under the key, so a device that was reset
// starts empty. Thread safety: all functions are; state per thread is in ThreadState.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace runtime {

inline constexpr int kDevicesMax = 64;

// Makes sure that a context is current on this thread, and notes it in Thread().context.
cudaError_t UseContext();

// Makes the primary context of `device` current on this thread (cudaSetDevice).
cudaError_t UseDevice(int device);

// The device of the current context, or the one chosen for this thread when there is none.
cudaError_t CurrentDevice(int* device);

// The primary context of `device`, retained if it was not.
cudaError_t PrimaryContext(int device, CUcontext* context);

// The primary context that a key stands for, or null if that context is gone or was the program's
// own.
CUcontext LivePrimary(uint64_t context_key);

// Destroys the primary context of `device`; the next call that needs it makes a new one.
cudaError_t ResetDevice(int device);

}  // namespace runtime
