// The documented CUDA driver calls that cuBLAS stands on, found in libcuda.so.1 at first use: by
// then a preloaded library of that name is the one that answers.
//
// Thread safety: Get() from any thread; the table never changes afterwards and lives forever.
#pragma once

#include "ipc/calls/vendor.h"
#include "softgpu/cublas/core/visibility.h"

namespace softgpu::cublas {

#define SOFTGPU_CUBLAS_DRIVER_CALLS(CALL) \
  CALL(cuInit)                            \
  CALL(cuCtxGetCurrent)                   \
  CALL(cuCtxSetCurrent)                   \
  CALL(cuDeviceGet)                       \
  CALL(cuDevicePrimaryCtxRetain)          \
  CALL(cuLaunchHostFunc)                  \
  CALL(cuStreamSynchronize)               \
  CALL(cuStreamIsCapturing)               \
  CALL(cuStreamGetCaptureInfo_v2)         \
  CALL(cuUserObjectCreate)                \
  CALL(cuGraphRetainUserObject)           \
  CALL(cuMemcpy2D_v2)                     \
  CALL(cuMemcpy2DUnaligned_v2)            \
  CALL(cuMemcpy2DAsync_v2)

struct Driver {
#define SOFTGPU_CUBLAS_MEMBER(fn) decltype(&::fn) fn = nullptr;
  SOFTGPU_CUBLAS_DRIVER_CALLS(SOFTGPU_CUBLAS_MEMBER)
#undef SOFTGPU_CUBLAS_MEMBER
  // What the software GPU's driver has besides (its extension.h); null on another.
  int (*softgpuHasMemory)(CUdeviceptr address, size_t bytes) = nullptr;
  CUresult (*softgpuRaiseFault)(CUresult code, const char* text) = nullptr;

  // nullptr when libcuda.so.1 can't be loaded or lacks one of the calls.
  SOFTGPU_CUBLAS_CORE static const Driver* Get();

  // Makes sure that the calling thread has a context, the first device's primary one if none.
  SOFTGPU_CUBLAS_CORE cublasStatus_t EnsureContext() const;
};

// What a cuBLAS caller sees of a failed driver call.
SOFTGPU_CUBLAS_CORE cublasStatus_t StatusOf(CUresult result);

}  // namespace softgpu::cublas
