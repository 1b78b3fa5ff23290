// What a pointer is: attributes of addresses and of managed ranges.
#include <cstring>
#include <memory>

#include "softgpu/driver/api.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/device.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/handles.h"
#include "softgpu/driver/memory_pool.h"
#include "softgpu/driver/stream.h"

namespace softgpu::api {
namespace {

using Kind = Allocation::Kind;

template <class T>
void Put(void* data, T value) {
  std::memcpy(data, &value, sizeof value);
}

CUcontext ContextOf(const Allocation& allocation) {
  for (const std::shared_ptr<Context>& context : Driver::Get().contexts.All()) {
    if (context->id() == allocation.context_id) return context->handle();
  }
  return nullptr;
}

// The attributes that any address inside the driver's memory has. False: not among them.
bool PutIdentity(void* data, CUpointer_attribute attribute, const Allocation& found,
                 uint64_t address) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      Put(data, ContextOf(found));
      return true;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      Put<unsigned>(data, found.host() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
      return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      Put<CUdeviceptr>(data, address);
      return true;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      Put<unsigned long long>(data, found.id);
      return true;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      Put<unsigned>(data, found.kind == Kind::kManaged ? 1 : 0);
      return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      Put<int>(data, found.device);
      return true;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      Put<int>(data, 1);
      return true;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      Put<CUmemoryPool>(data, found.pool != nullptr ? found.pool->handle() : nullptr);
      return true;
    default:
      return false;
  }
}

bool PutRange(void* data, CUpointer_attribute attribute, const Allocation& found) {
  uint64_t base = found.base, bytes = found.bytes;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      // Of mapped memory the range is the reservation, the mapping is apart.
      if (found.kind == Kind::kMapping) {
        Driver::Get().virtual_memory().FindReservation(found.base, &base, &bytes);
      }
      Put<uint64_t>(data, attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE ? bytes : base);
      return true;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      Put<uint64_t>(data, base);
      return true;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      Put<uint64_t>(data, bytes);
      return true;
    default:
      return false;
  }
}

bool PutAbility(void* data, CUpointer_attribute attribute, const Allocation& found) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      Put<unsigned>(data, found.sync_memops ? 1 : 0);
      return true;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      Put<unsigned long long>(
          data, found.extent != nullptr ? found.extent->properties().requestedHandleTypes : 0);
      return true;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      Put<unsigned long long>(data, found.access);
      return true;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      Put<int>(data, 0);
      return true;
    default:
      return false;
  }
}

CUresult PutAttribute(void* data, CUpointer_attribute attribute, const Allocation& found,
                      uint64_t address) {
  if (attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER) {
    if (!found.host() && found.kind != Kind::kManaged) {
      return Fail(CUDA_ERROR_INVALID_VALUE, "device memory has no host address");
    }
    Put<uint64_t>(data, address);
    return CUDA_SUCCESS;
  }
  const bool known = PutIdentity(data, attribute, found, address) ||
                     PutRange(data, attribute, found) || PutAbility(data, attribute, found);
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// What cuPointerGetAttributes reports of an address that the driver doesn't know.
void PutUnknown(void* data, CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      Put<int>(data, CU_DEVICE_INVALID);
      break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      Put<int>(data, 0);
      break;
    default:
      Put<uint64_t>(data, 0);
      break;
  }
}

}  // namespace

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  std::shared_ptr<Context> context;
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Allocation> found = Driver::Get().memory_map().Find(address);
  if (found != nullptr) return PutAttribute(data, attribute, *found, address);
  uint64_t base = 0, bytes = 0;
  if (Driver::Get().virtual_memory().FindReservation(address, &base, &bytes)) {
    Allocation reserved;
    reserved.kind = Kind::kMapping;
    reserved.base = base;
    if (attribute == CU_POINTER_ATTRIBUTE_MAPPED) {
      Put<int>(data, 0);
      return CUDA_SUCCESS;
    }
    if (PutRange(data, attribute, reserved)) return CUDA_SUCCESS;
  }
  if (attribute == CU_POINTER_ATTRIBUTE_MAPPED) {
    Put<int>(data, 0);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;  // no log entry: asking is how programs tell host pointers apart
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr address) {
  std::shared_ptr<Context> context;
  if (attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Allocation> found = Driver::Get().memory_map().Find(address);
  for (unsigned i = 0; i < count; ++i) {
    if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (found == nullptr || PutAttribute(data[i], attributes[i], *found, address) != CUDA_SUCCESS) {
      PutUnknown(data[i], attributes[i]);
    }
  }
  return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute,
                               CUdeviceptr address) {
  if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
    return CUDA_ERROR_INVALID_VALUE;
  const std::shared_ptr<Allocation> found = Driver::Get().memory_map().Find(address);
  if (found == nullptr) return Fail(CUDA_ERROR_INVALID_VALUE, "this is not the driver's memory");
  unsigned sync = 0;
  std::memcpy(&sync, value, sizeof sync);
  found->sync_memops = sync != 0;
  return CUDA_SUCCESS;
}

// --- managed ranges: host and devices share the pages, so advice and prefetching have nothing to
// do

namespace {

CUresult CheckManaged(uint64_t address, size_t bytes) {
  std::shared_ptr<Context> context;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Allocation> found = Driver::Get().memory_map().Find(address);
  if (bytes == 0 || found == nullptr || found->kind != Kind::kManaged ||
      bytes > found->end() - address) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "the range is not managed memory");
  }
  return CUDA_SUCCESS;
}

CUresult Prefetch(uint64_t address, size_t bytes, CUstream handle) {
  std::shared_ptr<Stream> stream;
  const CUresult result = CheckManaged(address, bytes);
  return result == CUDA_SUCCESS ? FindStream(handle, &stream) : result;
}

}  // namespace

CUresult cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise, CUmemLocation) {
  return CheckManaged(address, bytes);
}

CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise, CUdevice) {
  return CheckManaged(address, bytes);
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation, unsigned int flags,
                               CUstream stream) {
  return flags == 0 ? Prefetch(address, bytes, stream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice, CUstream stream) {
  return Prefetch(address, bytes, stream);
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr* addresses, size_t* sizes, size_t count,
                                 CUmemLocation*, size_t*, size_t, unsigned long long flags,
                                 CUstream stream) {
  if (addresses == nullptr || sizes == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const CUresult result = Prefetch(addresses[i], sizes[i], stream);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

// Discarded bytes are undefined, which includes what they were.
CUresult cuMemDiscardBatchAsync(CUdeviceptr* addresses, size_t* sizes, size_t count,
                                unsigned long long flags, CUstream stream) {
  return api::cuMemPrefetchBatchAsync(addresses, sizes, count, nullptr, nullptr, 0, flags, stream);
}

CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* addresses, size_t* sizes, size_t count,
                                           CUmemLocation*, size_t*, size_t,
                                           unsigned long long flags, CUstream stream) {
  return api::cuMemPrefetchBatchAsync(addresses, sizes, count, nullptr, nullptr, 0, flags, stream);
}

CUresult cuMemRangeGetAttribute(void* data, size_t data_bytes, CUmem_range_attribute attribute,
                                CUdeviceptr address, size_t bytes) {
  if (data == nullptr || data_bytes == 0 || data_bytes % 4 != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CheckManaged(address, bytes);
  if (result != CUDA_SUCCESS) return result;
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
      Put<int>(data, 0);
      return CUDA_SUCCESS;
    default:
      for (size_t i = 0; i < data_bytes / 4; ++i) static_cast<int*>(data)[i] = CU_DEVICE_INVALID;
      return CUDA_SUCCESS;
  }
}

CUresult cuMemRangeGetAttributes(void** data, size_t* data_bytes, CUmem_range_attribute* attributes,
                                 size_t count, CUdeviceptr address, size_t bytes) {
  if (data == nullptr || data_bytes == nullptr || attributes == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const CUresult result =
        api::cuMemRangeGetAttribute(data[i], data_bytes[i], attributes[i], address, bytes);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace softgpu::api
