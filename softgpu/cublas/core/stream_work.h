// Work in stream order: a closure that the driver calls when the stream reaches it.
//
// Device memory of the software GPU is plain memory of the process at its own address, so a cuBLAS
// call is a host function (cuLaunchHostFunc). While the stream is capturing, the closure becomes a
// node: it may then run many times, and the graph owns it.
// Thread safety: any thread with a current context. Closures run on the driver's threads, make no
// CUDA calls and don't throw; running out of host memory in one ends the process with a sentence.
#pragma once

#include <functional>

#include "softgpu/cublas/core/driver.h"

namespace softgpu::cublas {

SOFTGPU_CUBLAS_CORE cublasStatus_t EnqueueOn(CUstream stream, std::function<void()> work);

}  // namespace softgpu::cublas
