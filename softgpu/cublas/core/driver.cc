#include "softgpu/cublas/core/driver.h"

#include <dlfcn.h>

namespace softgpu::cublas {
namespace {

const Driver* Load() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  static Driver driver;
  bool complete = true;
#define SOFTGPU_CUBLAS_LOAD(fn)                                           \
  driver.fn = reinterpret_cast<decltype(driver.fn)>(dlsym(library, #fn)); \
  complete = complete && driver.fn != nullptr;
  SOFTGPU_CUBLAS_DRIVER_CALLS(SOFTGPU_CUBLAS_LOAD)
#undef SOFTGPU_CUBLAS_LOAD
  driver.softgpuHasMemory =
      reinterpret_cast<decltype(driver.softgpuHasMemory)>(dlsym(library, "softgpuHasMemory"));
  driver.softgpuRaiseFault =
      reinterpret_cast<decltype(driver.softgpuRaiseFault)>(dlsym(library, "softgpuRaiseFault"));
  return complete ? &driver : nullptr;
}

}  // namespace

const Driver* Driver::Get() {
  static const Driver* const driver = Load();
  return driver;
}

cublasStatus_t Driver::EnsureContext() const {
  CUresult result = cuInit(0);
  CUcontext context = nullptr;
  if (result == CUDA_SUCCESS) result = cuCtxGetCurrent(&context);
  if (result != CUDA_SUCCESS || context != nullptr) return StatusOf(result);
  CUdevice device = 0;
  result = cuDeviceGet(&device, 0);
  if (result == CUDA_SUCCESS) result = cuDevicePrimaryCtxRetain(&context, device);
  if (result == CUDA_SUCCESS) result = cuCtxSetCurrent(context);
  return StatusOf(result);
}

cublasStatus_t StatusOf(CUresult result) {
  switch (result) {
    case CUDA_SUCCESS:
      return CUBLAS_STATUS_SUCCESS;
    case CUDA_ERROR_OUT_OF_MEMORY:
      return CUBLAS_STATUS_ALLOC_FAILED;
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_CONTEXT:
      return CUBLAS_STATUS_NOT_INITIALIZED;
    case CUDA_ERROR_INVALID_VALUE:
      return CUBLAS_STATUS_INVALID_VALUE;
    case CUDA_ERROR_NOT_SUPPORTED:
      return CUBLAS_STATUS_NOT_SUPPORTED;
    default:
      return CUBLAS_STATUS_EXECUTION_FAILED;
  }
}

}  // namespace softgpu::cublas
