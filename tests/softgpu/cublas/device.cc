#include "tests/softgpu/cublas/device.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace softgpu::cublas {
namespace {

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "device for tests: %s failed (%s)\n", what, dlerror());
  std::abort();
}

}  // namespace

const Device& Device::Get() {
  static const Device* const device = new Device;
  return *device;
}

Device::Device() : library_(dlopen(SOFTGPU_DRIVER, RTLD_NOW)) {
  Require(library_ != nullptr, "dlopen of " SOFTGPU_DRIVER);
  CUcontext context = nullptr;
  CUdevice device = 0;
  Require(Function<decltype(cuInit)>("cuInit")(0) == CUDA_SUCCESS, "cuInit");
  Require(Function<decltype(cuDeviceGet)>("cuDeviceGet")(&device, 0) == CUDA_SUCCESS,
          "cuDeviceGet");
  Require(Function<decltype(cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(
              &context, device) == CUDA_SUCCESS,
          "cuDevicePrimaryCtxRetain");
  Require(Function<decltype(cuCtxSetCurrent)>("cuCtxSetCurrent")(context) == CUDA_SUCCESS,
          "cuCtxSetCurrent");
}

void* Device::Find(const char* name) const {
  void* const address = dlsym(library_, name);
  Require(address != nullptr, name);
  return address;
}

void* Device::Allocate(size_t bytes) const {
  CUdeviceptr address = 0;
  Require(Function<decltype(cuMemAlloc_v2)>("cuMemAlloc_v2")(&address, bytes) == CUDA_SUCCESS,
          "cuMemAlloc");
  return reinterpret_cast<void*>(address);
}

void Device::Free(void* address) const {
  const CUresult result =
      Function<decltype(cuMemFree_v2)>("cuMemFree_v2")(reinterpret_cast<CUdeviceptr>(address));
  Require(result == CUDA_SUCCESS, "cuMemFree");
}

void Device::CopyIn(void* device, const void* host, size_t bytes) const {
  const CUresult result = Function<decltype(cuMemcpyHtoD_v2)>("cuMemcpyHtoD_v2")(
      reinterpret_cast<CUdeviceptr>(device), host, bytes);
  Require(result == CUDA_SUCCESS, "cuMemcpyHtoD");
}

void Device::CopyOut(void* host, const void* device, size_t bytes) const {
  const CUresult result = Function<decltype(cuMemcpyDtoH_v2)>("cuMemcpyDtoH_v2")(
      host, reinterpret_cast<CUdeviceptr>(device), bytes);
  Require(result == CUDA_SUCCESS, "cuMemcpyDtoH");
}

CUstream Device::CreateStream() const {
  CUstream stream = nullptr;
  const CUresult result =
      Function<decltype(cuStreamCreate)>("cuStreamCreate")(&stream, CU_STREAM_NON_BLOCKING);
  Require(result == CUDA_SUCCESS, "cuStreamCreate");
  return stream;
}

void Device::DestroyStream(CUstream stream) const {
  const CUresult result = Function<decltype(cuStreamDestroy_v2)>("cuStreamDestroy_v2")(stream);
  Require(result == CUDA_SUCCESS, "cuStreamDestroy");
}

void Device::Synchronize() const {
  Require(Function<decltype(cuCtxSynchronize)>("cuCtxSynchronize")() == CUDA_SUCCESS,
          "cuCtxSynchronize");
}

void Device::LaunchHost(CUstream stream, CUhostFn function, void* data) const {
  const CUresult result =
      Function<decltype(cuLaunchHostFunc)>("cuLaunchHostFunc")(stream, function, data);
  Require(result == CUDA_SUCCESS, "cuLaunchHostFunc");
}

}  // namespace softgpu::cublas
