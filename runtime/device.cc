// Devices: choosing one, its attributes, limits and flags, and the versions of driver and runtime.
#include "runtime/api.h"
#include "runtime/context.h"
#include "runtime/driver.h"
#include "runtime/thread_state.h"

namespace runtime {
namespace api {

cudaError_t cudaGetDeviceCount(int* count) {
  const cudaError_t error = Driver().cuDeviceGetCount(count);
  return error == cudaSuccess && *count == 0 ? cudaErrorNoDevice : error;
}

cudaError_t cudaGetDevice(int* device) {
  return device == nullptr ? cudaErrorInvalidValue : CurrentDevice(device);
}

cudaError_t cudaSetDevice(int device) { return UseDevice(device); }

cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
  if (flags == cudaInitDeviceFlagsAreValid) {
    const cudaError_t error = Driver().cuDevicePrimaryCtxSetFlags_v2(device, device_flags);
    if (error != cudaSuccess) return error;
  } else if (flags != 0) {
    return cudaErrorInvalidValue;
  }
  CUcontext context = nullptr;
  return PrimaryContext(device, &context);
}

// The list says in what order devices are tried; the first one is where this thread starts.
cudaError_t cudaSetValidDevices(int* devices, int count) {
  int present = 0;
  const cudaError_t error = Driver().cuDeviceGetCount(&present);
  if (error != cudaSuccess || count == 0) return error;
  if (devices == nullptr || count < 0) return cudaErrorInvalidValue;
  for (int i = 0; i < count; ++i) {
    if (devices[i] < 0 || devices[i] >= present) return cudaErrorInvalidDevice;
  }
  Thread().device = devices[0];
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  CUcontext context = nullptr;
  const cudaError_t error = PrimaryContext(peer, &context);
  return error == cudaSuccess ? Driver().cuCtxEnablePeerAccess(context, flags) : error;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  CUcontext context = nullptr;
  const cudaError_t error = PrimaryContext(peer, &context);
  return error == cudaSuccess ? Driver().cuCtxDisablePeerAccess(context) : error;
}

cudaError_t cudaSetDeviceFlags(unsigned flags) {
  if ((flags & ~unsigned{cudaDeviceMask}) != 0) return cudaErrorInvalidValue;
  int device = 0;
  const cudaError_t error = CurrentDevice(&device);
  return error == cudaSuccess ? Driver().cuDevicePrimaryCtxSetFlags_v2(device, flags) : error;
}

cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  int device = 0, active = 0;
  const cudaError_t error = CurrentDevice(&device);
  return error == cudaSuccess ? Driver().cuDevicePrimaryCtxGetState(device, flags, &active) : error;
}

cudaError_t cudaDeviceReset() {
  int device = 0;
  const cudaError_t error = CurrentDevice(&device);
  return error == cudaSuccess ? ResetDevice(device) : error;
}

// Banks have had one width since compute capability 5.
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  if (config == nullptr) return cudaErrorInvalidValue;
  *config = cudaSharedMemBankSizeFourByte;
  return cudaSuccess;
}

cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return cudaErrorInvalidValue;
  *version = CUDART_VERSION;
  return cudaSuccess;
}

// Version 0 says that there is no driver, which is not an error.
cudaError_t cudaDriverGetVersion(int* version) {
  if (version == nullptr) return cudaErrorInvalidValue;
  *version = 0;
  return FindDriver() ? Driver().cuDriverGetVersion(version) : cudaSuccess;
}

}  // namespace api
}  // namespace runtime
