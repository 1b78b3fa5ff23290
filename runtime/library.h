// Code that programs load themselves through cudaLibraryLoadData and its neighbours.
// Thread safety: all functions are.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace runtime {

// The driver's function, in the thread's context, of a cudaKernel_t that came from a library;
// cudaErrorInvalidDeviceFunction for any other pointer. REQUIRES: UseContext() on this thread.
cudaError_t FindLibraryFunction(const void* kernel, CUfunction* function);

}  // namespace runtime
