// From what programs name kernels by to the driver's functions.
//
// Thread safety: all functions are. REQUIRES: UseContext() on this thread.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace runtime {

// `func` is the host address of a kernel, or a cudaKernel_t. cudaErrorInvalidDeviceFunction
// otherwise.
cudaError_t FindFunction(const void* func, CUfunction* function);

// The driver's form of a launch configuration; it points to the same attributes.
CUlaunchConfig ToDriver(const cudaLaunchConfig_t& config);

}  // namespace runtime
