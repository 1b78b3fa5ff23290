// Host functions and stream callbacks: work of a stream that calls into the application.
//
// While the application's function runs, its thread may not call the driver
// (ThreadState::in_callback).
#pragma once

#include <cuda.h>

#include <memory>

#include "softgpu/driver/operation.h"

namespace softgpu {

// Not run after a fault, as the manual says.
std::unique_ptr<Operation> MakeHostFunction(CUhostFn function, void* data);
// Told of a fault in its status.
std::unique_ptr<Operation> MakeCallback(CUstream stream, CUstreamCallback callback, void* data);

}  // namespace softgpu
