// Virtual memory management: reserve, create, export, import, map, protect.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "softgpu/driver/api.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/device.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/extent.h"
#include "softgpu/driver/extent_handle.h"
#include "softgpu/driver/handles.h"
#include "softgpu/driver/virtual_memory.h"

namespace softgpu::api {
namespace {

CUmemGenericAllocationHandle ToHandle(const std::shared_ptr<ExtentHandle>& extent) {
  return reinterpret_cast<CUmemGenericAllocationHandle>(extent.get());
}

CUresult FindExtent(CUmemGenericAllocationHandle handle, std::shared_ptr<ExtentHandle>* extent) {
  *extent = Driver::Get().extents.Find(reinterpret_cast<const void*>(handle));
  return *extent != nullptr
             ? CUDA_SUCCESS
             : Fail(CUDA_ERROR_INVALID_VALUE, "this is no handle of physical memory");
}

bool IsHostLocation(CUmemLocationType type) {
  return type == CU_MEM_LOCATION_TYPE_HOST || type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
         type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

CUresult CheckProperties(const CUmemAllocationProp* properties) {
  if (properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) {
    return Fail(CUDA_ERROR_INVALID_VALUE,
                "the allocation type must be CU_MEM_ALLOCATION_TYPE_PINNED");
  }
  const CUmemLocation& location = properties->location;
  Device* device = nullptr;
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) return FindDevice(location.id, &device);
  return IsHostLocation(location.type) ? CUDA_SUCCESS
                                       : Fail(CUDA_ERROR_INVALID_VALUE, "the location is unknown");
}

constexpr unsigned kShareable = CU_MEM_HANDLE_TYPE_NONE | CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

}  // namespace

CUresult cuMemAddressReserve(CUdeviceptr* out, size_t bytes, size_t alignment, CUdeviceptr hint,
                             unsigned long long flags) {
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address = 0;
  const CUresult result = Driver::Get().virtual_memory().Reserve(bytes, alignment, hint, &address);
  if (result == CUDA_SUCCESS) *out = address;
  return result;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  return Driver::Get().virtual_memory().Free(address, bytes);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* out, size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CheckProperties(properties);
  if (result != CUDA_SUCCESS) return result;
  if (bytes == 0 || bytes % Extent::kGranularity != 0) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "the size is not a multiple of 2 MiB");
  }
  if ((properties->requestedHandleTypes & ~kShareable) != 0) {
    return Fail(CUDA_ERROR_NOT_SUPPORTED, "memory can be shared by POSIX file descriptors only");
  }
  Charge charge;
  if (properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
    MemoryLimit& limit = Driver::Get().device(properties->location.id)->memory();
    charge = Charge(&limit, bytes);
    if (!charge.taken()) {
      return Fail(CUDA_ERROR_OUT_OF_MEMORY, std::to_string(bytes) + " bytes asked, " +
                                                std::to_string(limit.total() - limit.used()) +
                                                " free");
    }
  }
  const std::shared_ptr<Extent> extent = Extent::Create(bytes, *properties, std::move(charge));
  if (extent == nullptr)
    return Fail(CUDA_ERROR_OUT_OF_MEMORY, "the system gave no shared memory file");
  const std::shared_ptr<ExtentHandle> handle = std::make_shared<ExtentHandle>(extent);
  Driver::Get().extents.Add(handle);
  *out = ToHandle(handle);
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  std::shared_ptr<ExtentHandle> extent;
  const CUresult result = FindExtent(handle, &extent);
  if (result == CUDA_SUCCESS && extent->Release()) Driver::Get().extents.Remove(extent.get());
  return result;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* out, void* address) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::shared_ptr<Allocation> mapping =
      Driver::Get().memory_map().Find(reinterpret_cast<uint64_t>(address));
  if (mapping == nullptr || mapping->kind != Allocation::Kind::kMapping) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "no memory of cuMemCreate is mapped at this address");
  }
  for (const std::shared_ptr<ExtentHandle>& handle : Driver::Get().extents.All()) {
    if (handle->extent() != mapping->extent) continue;
    handle->Retain();
    *out = ToHandle(handle);
    return CUDA_SUCCESS;
  }
  // Every handle was released while the mapping kept the memory.
  const std::shared_ptr<ExtentHandle> handle = std::make_shared<ExtentHandle>(mapping->extent);
  Driver::Get().extents.Add(handle);
  *out = ToHandle(handle);
  return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
  std::shared_ptr<ExtentHandle> extent;
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindExtent(handle, &extent);
  if (result != CUDA_SUCCESS) return result;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
      (extent->extent()->properties().requestedHandleTypes & type) == 0) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "the memory was not created with this handle type");
  }
  const int descriptor = fcntl(extent->extent()->descriptor(), F_DUPFD_CLOEXEC, 0);
  if (descriptor < 0) return Fail(CUDA_ERROR_OPERATING_SYSTEM, "no descriptor is free");
  *static_cast<int*>(out) = descriptor;
  return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* out, void* os_handle,
                                        CUmemAllocationHandleType type) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    return Fail(CUDA_ERROR_NOT_SUPPORTED, "memory can be shared by POSIX file descriptors only");
  }
  const int descriptor = static_cast<int>(reinterpret_cast<intptr_t>(os_handle));
  const std::shared_ptr<Extent> extent = Extent::ImportUntrusted(descriptor);
  if (extent == nullptr) {
    return Fail(CUDA_ERROR_INVALID_VALUE,
                "the descriptor is not exported memory of a software GPU");
  }
  const std::shared_ptr<ExtentHandle> handle = std::make_shared<ExtentHandle>(extent);
  Driver::Get().extents.Add(handle);
  *out = ToHandle(handle);
  return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  std::shared_ptr<ExtentHandle> extent;
  if (offset != 0 || flags != 0)
    return Fail(CUDA_ERROR_INVALID_VALUE, "offset and flags must be 0");
  const CUresult result = FindExtent(handle, &extent);
  if (result != CUDA_SUCCESS) return result;
  return Driver::Get().virtual_memory().Map(address, bytes, extent->extent());
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  return Driver::Get().virtual_memory().Unmap(address, bytes);
}

// Host and devices see one mapping, so the widest access that any location asks for is everybody's.
CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* descriptions,
                        size_t count) {
  if (descriptions == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  unsigned long long access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  for (size_t i = 0; i < count; ++i) {
    Device* device = nullptr;
    const CUmemLocation& location = descriptions[i].location;
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
      const CUresult result = FindDevice(location.id, &device);
      if (result != CUDA_SUCCESS) return result;
    } else if (!IsHostLocation(location.type)) {
      return Fail(CUDA_ERROR_INVALID_VALUE, "the location is unknown");
    }
    access = std::max<unsigned long long>(access, descriptions[i].flags);
  }
  return Driver::Get().virtual_memory().SetAccess(address, bytes, access);
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr address) {
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::shared_ptr<Allocation> mapping = Driver::Get().memory_map().Find(address);
  if (mapping == nullptr)
    return Fail(CUDA_ERROR_INVALID_VALUE, "nothing is mapped at this address");
  *flags = mapping->access;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags) {
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CheckProperties(properties);
  if (result == CUDA_SUCCESS) *bytes = Extent::kGranularity;
  return result;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                CUmemGenericAllocationHandle handle) {
  std::shared_ptr<ExtentHandle> extent;
  if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindExtent(handle, &extent);
  if (result == CUDA_SUCCESS) *properties = extent->extent()->properties();
  return result;
}

}  // namespace softgpu::api
