// Allocation of device and host memory, and what is known about an address.
#include "runtime/api.h"
#include "runtime/driver.h"

namespace runtime {
namespace {

CUdeviceptr* DeviceAddress(void** pointer) { return reinterpret_cast<CUdeviceptr*>(pointer); }

cudaMemoryType TypeOf(unsigned driver_type, bool managed) {
  if (managed) return cudaMemoryTypeManaged;
  if (driver_type == CU_MEMORYTYPE_HOST) return cudaMemoryTypeHost;
  return driver_type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
}

}  // namespace

namespace api {

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  if (bytes == 0) {  // the driver refuses this; the runtime does not
    *pointer = nullptr;
    return cudaSuccess;
  }
  return Driver().cuMemAlloc_v2(DeviceAddress(pointer), bytes);
}

cudaError_t cudaFree(void* pointer) {
  return pointer == nullptr ? cudaSuccess : Driver().cuMemFree_v2(DeviceAddress(pointer));
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  if (pointer == nullptr || pitch == nullptr) return cudaErrorInvalidValue;
  if (width == 0 || height == 0) {
    *pointer = nullptr;
    *pitch = 0;
    return cudaSuccess;
  }
  constexpr unsigned kElementBytes = 4;  // the widest access that stays coalesced in every row
  return Driver().cuMemAllocPitch_v2(DeviceAddress(pointer), pitch, width, height, kElementBytes);
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent) {
  if (pitched == nullptr) return cudaErrorInvalidValue;
  cudaPitchedPtr made = {};
  const cudaError_t error =
      api::cudaMallocPitch(&made.ptr, &made.pitch, extent.width, extent.height * extent.depth);
  if (error != cudaSuccess) return error;
  made.xsize = extent.width;
  made.ysize = extent.height;
  *pitched = made;
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  if (bytes == 0) {
    *pointer = nullptr;
    return cudaSuccess;
  }
  return Driver().cuMemHostAlloc(pointer, bytes, flags);
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return api::cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void* pointer) {
  return pointer == nullptr ? cudaSuccess : Driver().cuMemFreeHost(pointer);
}

// An address that the driver does not know is ordinary host memory, which is not an error.
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr) return cudaErrorInvalidValue;
  unsigned type = 0;
  unsigned managed = 0;
  int device = -1;
  CUdeviceptr device_address = 0;
  void* host_address = nullptr;
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                  CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                  CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* values[] = {&type, &managed, &device, &device_address, &host_address};
  const cudaError_t error =
      Driver().cuPointerGetAttributes(5, wanted, values, DeviceAddress(pointer));
  if (error != cudaSuccess && error != cudaErrorInvalidValue) return error;
  *attributes = {};
  attributes->type = error == cudaSuccess ? TypeOf(type, managed != 0) : cudaMemoryTypeUnregistered;
  if (attributes->type == cudaMemoryTypeUnregistered) {
    attributes->device = cudaInvalidDeviceId;
    attributes->hostPointer = const_cast<void*>(pointer);
    return cudaSuccess;
  }
  attributes->device = device;
  attributes->devicePointer = reinterpret_cast<void*>(device_address);
  attributes->hostPointer = host_address;
  return cudaSuccess;
}

}  // namespace api
}  // namespace runtime
