// Virtual memory management by the program (shim/virtual_memory.h).
#include "shim/virtual_memory.h"

#include <cstring>

#include "shim/devices.h"
#include "shim/driver/local.h"
#include "shim/driver/ready.h"

namespace local {
namespace {

using shim::VirtualMemory;

std::atomic<bool> said_host, said_shared;

bool IsHost(CUmemLocationType type) {
  return type == CU_MEM_LOCATION_TYPE_HOST || type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
         type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

CUresult DeviceAt(const CUmemLocation& location, int* ordinal) {
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) return OrdinalOf(location.id, ordinal);
  if (!IsHost(location.type)) return CUDA_ERROR_INVALID_VALUE;
  return shim::RefuseVirtualMemory(
      said_host, "memory of the host is not supported in virtual memory management");
}

CUresult Check(const CUmemAllocationProp* properties, int* ordinal) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  if (properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_INVALID_VALUE;
  return DeviceAt(properties->location, ordinal);
}

using Flags = decltype(CUmemAllocationProp::allocFlags);
static_assert(sizeof(Flags) == sizeof(uint64_t));

uint64_t ToNote(const Flags& flags) {
  uint64_t note = 0;
  std::memcpy(&note, &flags, sizeof note);
  return note;
}

}  // namespace

// The hint is not followed, which the manual allows.
CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr,
                             unsigned long long flags) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  if (address == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  uint64_t reserved = 0;
  const CUresult result = VirtualMemory::Process().Reserve(bytes, alignment, &reserved);
  if (result == CUDA_SUCCESS) *address = reserved;
  return result;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  return VirtualMemory::Process().FreeAddresses(address, bytes);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
  int ordinal = 0;
  if (handle == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = Check(properties, &ordinal); result != CUDA_SUCCESS) return result;
  if (bytes == 0 || bytes % shim::arena::kVirtualStep != 0) return CUDA_ERROR_INVALID_VALUE;
  if (properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE)
    return shim::RefuseVirtualMemory(
        said_shared, "cuMemCreate: memory for other processes is not supported yet");
  uint64_t made = 0;
  const CUresult result =
      VirtualMemory::Process().Create(ordinal, bytes, ToNote(properties->allocFlags), &made);
  if (result == CUDA_SUCCESS) *handle = made;
  return result;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  return VirtualMemory::Process().Release(handle);
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t retained = 0;
  const CUresult result =
      VirtualMemory::Process().Retain(reinterpret_cast<uint64_t>(address), &retained);
  if (result == CUDA_SUCCESS) *handle = retained;
  return result;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  if (offset != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return VirtualMemory::Process().Map(address, bytes, handle);
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  return VirtualMemory::Process().Unmap(address, bytes);
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* descriptions,
                        size_t count) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  if (descriptions == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    int ordinal = 0;
    CUresult result = DeviceAt(descriptions[i].location, &ordinal);
    if (result == CUDA_SUCCESS) {
      result = VirtualMemory::Process().SetAccess(address, bytes, ordinal, descriptions[i].flags);
    }
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(unsigned long long* access, const CUmemLocation* location,
                        CUdeviceptr address) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  int ordinal = 0;
  if (access == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = DeviceAt(*location, &ordinal); result != CUDA_SUCCESS) return result;
  return VirtualMemory::Process().AccessAt(address, ordinal, access);
}

CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags) {
  int ordinal = 0;
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = Check(properties, &ordinal); result != CUDA_SUCCESS) return result;
  *bytes = shim::arena::kVirtualStep;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                CUmemGenericAllocationHandle handle) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  int ordinal = 0;
  uint64_t note = 0;
  const CUresult result = VirtualMemory::Process().Describe(handle, &ordinal, &note);
  if (result != CUDA_SUCCESS) return result;
  *properties = {};
  properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties->location = {CU_MEM_LOCATION_TYPE_DEVICE, {shim::Devices::Process().Visible(ordinal)}};
  std::memcpy(&properties->allocFlags, &note, sizeof note);
  return CUDA_SUCCESS;
}

}  // namespace local
