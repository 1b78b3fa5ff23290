// Devices and their attributes, from the cached description.
#include <algorithm>
#include <cstring>

#include "shim/client.h"
#include "shim/devices.h"
#include "shim/driver/local.h"
#include "shim/state.h"

namespace local {
namespace {

using shim::Client;
using shim::Devices;

CUresult InfoOf(CUdevice device, const ipc::DeviceInfo** info) {
  if (const CUresult result = Client::Process().Ready(); result != CUDA_SUCCESS) return result;
  int ordinal = 0;
  if (const CUresult result = Devices::Process().Ordinal(device, &ordinal); result != CUDA_SUCCESS)
    return result;
  return Devices::Process().Info(ordinal, info);
}

CUresult CopyText(char* to, int bytes, const char* from) {
  if (to == nullptr || bytes <= 0) return CUDA_ERROR_INVALID_VALUE;
  const size_t n = std::min(std::strlen(from), static_cast<size_t>(bytes) - 1);
  std::memcpy(to, from, n);
  to[n] = '\0';
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuDeviceGetCount(int* count) {
  if (const CUresult result = Client::Process().Ready(); result != CUDA_SUCCESS) return result;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = Devices::Process().Count();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (const CUresult result = Client::Process().Ready(); result != CUDA_SUCCESS) return result;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  int real = 0;
  if (const CUresult result = Devices::Process().Ordinal(ordinal, &real); result != CUDA_SUCCESS)
    return result;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int bytes, CUdevice device) {
  const ipc::DeviceInfo* info = nullptr;
  if (const CUresult result = InfoOf(device, &info); result != CUDA_SUCCESS) return result;
  return CopyText(name, bytes, info->name);
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  const ipc::DeviceInfo* info = nullptr;
  if (const CUresult result = InfoOf(device, &info); result != CUDA_SUCCESS) return result;
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  static_assert(sizeof uuid->bytes == sizeof info->uuid);
  std::memcpy(uuid->bytes, info->uuid, sizeof uuid->bytes);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return local::cuDeviceGetUuid_v2(uuid, device);
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  const ipc::DeviceInfo* info = nullptr;
  if (const CUresult result = InfoOf(device, &info); result != CUDA_SUCCESS) return result;
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *bytes = info->memory_bytes;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  const ipc::DeviceInfo* info = nullptr;
  if (const CUresult result = InfoOf(device, &info); result != CUDA_SUCCESS) return result;
  if (value == nullptr || attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX)
    return CUDA_ERROR_INVALID_VALUE;
  *value = info->attributes[attribute];
  return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  const ipc::DeviceInfo* info = nullptr;
  if (const CUresult result = InfoOf(device, &info); result != CUDA_SUCCESS) return result;
  if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *major = info->attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR];
  *minor = info->attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR];
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop* properties, CUdevice device) {
  const ipc::DeviceInfo* info = nullptr;
  if (const CUresult result = InfoOf(device, &info); result != CUDA_SUCCESS) return result;
  if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const int32_t* const value = info->attributes;
  properties->maxThreadsPerBlock = value[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK];
  properties->maxThreadsDim[0] = value[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X];
  properties->maxThreadsDim[1] = value[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y];
  properties->maxThreadsDim[2] = value[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z];
  properties->maxGridSize[0] = value[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X];
  properties->maxGridSize[1] = value[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y];
  properties->maxGridSize[2] = value[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z];
  properties->sharedMemPerBlock = value[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK];
  properties->totalConstantMemory = value[CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY];
  properties->SIMDWidth = value[CU_DEVICE_ATTRIBUTE_WARP_SIZE];
  properties->memPitch = value[CU_DEVICE_ATTRIBUTE_MAX_PITCH];
  properties->regsPerBlock = value[CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK];
  properties->clockRate = value[CU_DEVICE_ATTRIBUTE_CLOCK_RATE];
  properties->textureAlign = value[CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT];
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* id, int bytes, CUdevice device) {
  const ipc::DeviceInfo* info = nullptr;
  if (const CUresult result = InfoOf(device, &info); result != CUDA_SUCCESS) return result;
  return CopyText(id, bytes, info->pci_bus_id);
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
  if (device == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  int count = 0;
  if (const CUresult result = local::cuDeviceGetCount(&count); result != CUDA_SUCCESS)
    return result;
  for (CUdevice candidate = 0; candidate < count; ++candidate) {
    const ipc::DeviceInfo* info = nullptr;
    if (const CUresult result = InfoOf(candidate, &info); result != CUDA_SUCCESS) return result;
    if (strcasecmp(info->pci_bus_id, id) != 0) continue;
    *device = candidate;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

// Peer access would let one session's address mean another device's memory: each device stands
// alone.
CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  const ipc::DeviceInfo* info = nullptr;
  if (const CUresult result = InfoOf(device, &info); result != CUDA_SUCCESS) return result;
  if (const CUresult result = InfoOf(peer, &info); result != CUDA_SUCCESS) return result;
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *can = 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice source,
                                 CUdevice destination) {
  if (attribute < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ||
      attribute > CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED || source == destination) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return local::cuDeviceCanAccessPeer(value, source, destination);
}

CUresult cuDeviceGetExecAffinitySupport(int* supported, CUexecAffinityType, CUdevice device) {
  const ipc::DeviceInfo* info = nullptr;
  if (const CUresult result = InfoOf(device, &info); result != CUDA_SUCCESS) return result;
  if (supported == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *supported = 0;
  return CUDA_SUCCESS;
}

}  // namespace local
