// Devices: what they are, what they can do, and their primary contexts.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <string>

#include "ipc/calls/limits.h"
#include "softgpu/driver/api.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/device.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/handles.h"
#include "softgpu/driver/virtual_device.h"

namespace softgpu::api {
namespace {

constexpr char kName[] = "Laneway Software GPU";
// Whoever reads times of the device reads its name beside them.
constexpr char kVirtualName[] = "Laneway Software GPU (virtual time)";

CUresult CopyText(const std::string& text, char* buffer, int bytes) {
  if (buffer == nullptr || bytes <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(buffer, static_cast<size_t>(bytes), "%s", text.c_str());
  return CUDA_SUCCESS;
}

int AttributeOf(const Device& device, CUdevice_attribute attribute) {
  int value = 0;
  device.Attribute(attribute, &value);
  return value;
}

}  // namespace

CUresult cuDeviceGet(CUdevice* out, int ordinal) {
  Device* device = nullptr;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindDevice(ordinal, &device);
  if (result == CUDA_SUCCESS) *out = ordinal;
  return result;
}

CUresult cuDeviceGetCount(int* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = Driver::Get().device_count();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int bytes, CUdevice ordinal) {
  Device* device = nullptr;
  const CUresult result = FindDevice(ordinal, &device);
  if (result != CUDA_SUCCESS) return result;
  const bool is_virtual = VirtualDevice::Get() != nullptr;
  return CopyText(is_virtual ? kVirtualName : kName, name, bytes);
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice ordinal) {
  Device* device = nullptr;
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindDevice(ordinal, &device);
  if (result == CUDA_SUCCESS) *uuid = device->Uuid();
  return result;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice ordinal) {
  return api::cuDeviceGetUuid_v2(uuid, ordinal);
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice ordinal) {
  Device* device = nullptr;
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindDevice(ordinal, &device);
  if (result == CUDA_SUCCESS) *bytes = device->memory().total();
  return result;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice ordinal) {
  Device* device = nullptr;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindDevice(ordinal, &device);
  if (result != CUDA_SUCCESS) return result;
  return device->Attribute(attribute, value) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice ordinal) {
  Device* device = nullptr;
  if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindDevice(ordinal, &device);
  if (result != CUDA_SUCCESS) return result;
  *major = device->config().cc_major;
  *minor = device->config().cc_minor;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop* properties, CUdevice ordinal) {
  Device* device = nullptr;
  if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindDevice(ordinal, &device);
  if (result != CUDA_SUCCESS) return result;
  for (int i = 0; i < 3; ++i) {
    properties->maxThreadsDim[i] = AttributeOf(
        *device, static_cast<CUdevice_attribute>(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i));
    properties->maxGridSize[i] = AttributeOf(
        *device, static_cast<CUdevice_attribute>(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i));
  }
  properties->maxThreadsPerBlock = AttributeOf(*device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  properties->sharedMemPerBlock =
      AttributeOf(*device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  properties->totalConstantMemory = AttributeOf(*device, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  properties->SIMDWidth = AttributeOf(*device, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  properties->memPitch = AttributeOf(*device, CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  properties->regsPerBlock = AttributeOf(*device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  properties->clockRate = AttributeOf(*device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  properties->textureAlign = AttributeOf(*device, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* text, int bytes, CUdevice ordinal) {
  Device* device = nullptr;
  const CUresult result = FindDevice(ordinal, &device);
  return result == CUDA_SUCCESS ? CopyText(device->PciBusId(), text, bytes) : result;
}

CUresult cuDeviceGetByPCIBusId(CUdevice* out, const char* text) {
  if (out == nullptr || text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::string wanted = text;
  std::transform(wanted.begin(), wanted.end(), wanted.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  for (int i = 0; i < Driver::Get().device_count(); ++i) {
    const std::string id = Driver::Get().device(i)->PciBusId();
    // The domain and the function may be left out.
    const std::string short_id = id.substr(5), bare_id = id.substr(5, 5);
    if (wanted != id && wanted != short_id && wanted != bare_id) continue;
    *out = i;
    return CUDA_SUCCESS;
  }
  return Fail(CUDA_ERROR_INVALID_DEVICE, "no device has this PCI bus id");
}

CUresult cuDeviceGetLuid(char*, unsigned int*, CUdevice) { return CUDA_ERROR_NOT_SUPPORTED; }

CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t* elements, CUarray_format, unsigned, CUdevice) {
  if (elements == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *elements = ipc::limits::kLinearTexelsMax;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetExecAffinitySupport(int* supported, CUexecAffinityType, CUdevice ordinal) {
  Device* device = nullptr;
  if (supported == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *supported = 0;
  return FindDevice(ordinal, &device);
}

// --- peers: every device reads every other's memory, since all of it is this process's

CUresult cuDeviceCanAccessPeer(int* can, CUdevice ordinal, CUdevice peer) {
  Device* device = nullptr;
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = FindDevice(ordinal, &device);
  if (result == CUDA_SUCCESS) result = FindDevice(peer, &device);
  if (result == CUDA_SUCCESS) *can = ordinal != peer ? 1 : 0;
  return result;
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice source,
                                 CUdevice destination) {
  Device* device = nullptr;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = FindDevice(source, &device);
  if (result == CUDA_SUCCESS) result = FindDevice(destination, &device);
  if (result != CUDA_SUCCESS) return result;
  if (source == destination) return Fail(CUDA_ERROR_INVALID_DEVICE, "both are the same device");
  *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ? 0 : 1;
  return CUDA_SUCCESS;
}

// No atomic across the border is promised beyond what programs find by trying.
CUresult cuDeviceGetP2PAtomicCapabilities(unsigned int* capabilities,
                                          const CUatomicOperation* operations, unsigned int count,
                                          CUdevice source, CUdevice destination) {
  Device* device = nullptr;
  if (capabilities == nullptr || operations == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = FindDevice(source, &device);
  if (result == CUDA_SUCCESS) result = FindDevice(destination, &device);
  if (result == CUDA_SUCCESS) std::fill(capabilities, capabilities + count, 0u);
  return result;
}

CUresult cuDeviceGetHostAtomicCapabilities(unsigned int* capabilities,
                                           const CUatomicOperation* operations, unsigned int count,
                                           CUdevice ordinal) {
  return api::cuDeviceGetP2PAtomicCapabilities(capabilities, operations, count, ordinal, ordinal);
}

// --- primary contexts

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice ordinal) {
  Device* device = nullptr;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindDevice(ordinal, &device);
  if (result == CUDA_SUCCESS) *context = device->RetainPrimary()->handle();
  return result;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
  Device* device = nullptr;
  const CUresult result = FindDevice(ordinal, &device);
  return result == CUDA_SUCCESS ? device->ReleasePrimary() : result;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice ordinal) {
  return api::cuDevicePrimaryCtxRelease_v2(ordinal);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice ordinal) {
  Device* device = nullptr;
  const CUresult result = FindDevice(ordinal, &device);
  if (result == CUDA_SUCCESS) device->ResetPrimary();
  return result;
}

CUresult cuDevicePrimaryCtxReset(CUdevice ordinal) {
  return api::cuDevicePrimaryCtxReset_v2(ordinal);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned int flags) {
  Device* device = nullptr;
  if ((flags & ~CU_CTX_FLAGS_MASK) != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindDevice(ordinal, &device);
  return result == CUDA_SUCCESS ? device->SetPrimaryFlags(flags) : result;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice ordinal, unsigned int flags) {
  return api::cuDevicePrimaryCtxSetFlags_v2(ordinal, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int* flags, int* active) {
  Device* device = nullptr;
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindDevice(ordinal, &device);
  if (result == CUDA_SUCCESS) device->PrimaryState(flags, active);
  return result;
}

// --- graph memory: the pool of memory nodes is always empty

CUresult cuDeviceGetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute, void* value) {
  Device* device = nullptr;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *static_cast<cuuint64_t*>(value) = 0;
  return FindDevice(ordinal, &device);
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute, void* value) {
  Device* device = nullptr;
  if (value == nullptr || *static_cast<cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
  return FindDevice(ordinal, &device);
}

CUresult cuDeviceGraphMemTrim(CUdevice ordinal) {
  Device* device = nullptr;
  return FindDevice(ordinal, &device);
}

}  // namespace softgpu::api
