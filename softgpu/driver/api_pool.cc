// Memory pools and stream-ordered memory.
#include <memory>
#include <string>
#include <utility>

#include "softgpu/driver/api.h"
#include "softgpu/driver/capture.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/device.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/graph_memory.h"
#include "softgpu/driver/handles.h"
#include "softgpu/driver/memory_pool.h"
#include "softgpu/driver/stream.h"
#include "softgpu/driver/work.h"

namespace softgpu::api {
namespace {

CUresult FindPool(CUmemoryPool handle, std::shared_ptr<MemoryPool>* pool) {
  *pool = Driver::Get().pools.Find(handle);
  return *pool != nullptr ? CUDA_SUCCESS : Fail(CUDA_ERROR_INVALID_VALUE, "this is no memory pool");
}

CUresult FindDeviceAt(const CUmemLocation* location, CUmemAllocationType type, Device** device) {
  if (location == nullptr || type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return Fail(CUDA_ERROR_NOT_SUPPORTED, "pools hold device memory only");
  }
  return FindDevice(location->id, device);
}

// In a capturing stream the graph allocates.
CUresult Capture(MemoryPool& pool, size_t bytes, Stream& stream, CUdeviceptr* out) {
  CUDA_MEM_ALLOC_NODE_PARAMS params = {};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, pool.device().ordinal()};
  params.bytesize = bytes;
  std::shared_ptr<GraphMemory> memory =
      GraphMemory::Create(&pool.device(), params, stream.context()->id());
  if (memory == nullptr) return Fail(CUDA_ERROR_OUT_OF_MEMORY, "no room for the graph's memory");
  const CUdeviceptr address = memory->address();
  const CUresult result = AddToCapture(stream, AllocateWork{std::move(memory)});
  if (result == CUDA_SUCCESS) *out = address;
  return result;
}

CUresult Allocate(MemoryPool& pool, size_t bytes, const std::shared_ptr<Stream>& stream,
                  CUdeviceptr* out) {
  if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  Context& context = *stream->context();
  if (IsCapturing(*stream)) return Capture(pool, bytes, *stream, out);
  std::shared_ptr<Allocation> memory = pool.Allocate(bytes, context.id());
  if (memory == nullptr) {  // frees may be waiting in streams
    const CUresult result = context.Synchronize();
    if (result != CUDA_SUCCESS) return result;
    memory = pool.Allocate(bytes, context.id());
  }
  if (memory == nullptr) {
    return Fail(CUDA_ERROR_OUT_OF_MEMORY, std::to_string(bytes) + " bytes asked of the pool");
  }
  *out = memory->base;
  return CUDA_SUCCESS;
}

// Also runs after a fault: memory goes back all the same.
class FreeOperation final : public Operation {
 public:
  explicit FreeOperation(uint64_t base) : base_(base) {}
  CUresult Run() override {
    const std::shared_ptr<Allocation> removed = Driver::Get().memory_map().Remove(
        base_,
        [](const Allocation& allocation) { return allocation.kind == Allocation::Kind::kDevice; });
    if (removed != nullptr && removed->pool != nullptr) {
      removed->pool->Freed(Heap::RoundUp(removed->bytes));
    }
    return CUDA_SUCCESS;
  }
  void Skip(CUresult) override { Run(); }

 private:
  const uint64_t base_;
};

}  // namespace

CUresult cuMemAllocAsync(CUdeviceptr* out, size_t bytes, CUstream handle) {
  std::shared_ptr<Stream> stream;
  const CUresult result = FindStream(handle, &stream);
  if (result != CUDA_SUCCESS) return result;
  return Allocate(*stream->context()->device().current_pool(), bytes, stream, out);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t bytes, CUmemoryPool pool_handle,
                                 CUstream handle) {
  std::shared_ptr<Stream> stream;
  std::shared_ptr<MemoryPool> pool;
  CUresult result = FindStream(handle, &stream);
  if (result == CUDA_SUCCESS) result = FindPool(pool_handle, &pool);
  return result == CUDA_SUCCESS ? Allocate(*pool, bytes, stream, out) : result;
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  std::shared_ptr<Stream> stream;
  const CUresult result = FindStream(handle, &stream);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Allocation> found = Driver::Get().memory_map().Find(address);
  if (found == nullptr || found->base != address || found->kind != Allocation::Kind::kDevice) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "this is not the start of allocated device memory");
  }
  if (IsCapturing(*stream)) {
    return found->graph_free ? AddToCapture(*stream, FreeWork{address})
                             : RefuseWhileCapturing(*stream);
  }
  return SubmitChecked(stream, std::make_unique<FreeOperation>(address));
}

// --- pools

CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* properties) {
  Device* device = nullptr;
  if (out == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindDeviceAt(&properties->location, properties->allocType, &device);
  if (result != CUDA_SUCCESS) return result;
  if (properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE) {
    return Fail(CUDA_ERROR_NOT_SUPPORTED, "pools can't be shared between processes");
  }
  const std::shared_ptr<MemoryPool> pool =
      std::make_shared<MemoryPool>(device, properties->maxSize);
  Driver::Get().pools.Add(pool);
  *out = pool->handle();
  return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  std::shared_ptr<MemoryPool> pool;
  const CUresult result = FindPool(handle, &pool);
  if (result != CUDA_SUCCESS) return result;
  Device& device = pool->device();
  if (device.default_pool() == pool) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "the default pool can't be destroyed");
  }
  if (device.current_pool() == pool) device.SetCurrentPool(device.default_pool());
  Driver::Get().pools.Remove(handle);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  std::shared_ptr<MemoryPool> pool;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindPool(handle, &pool);
  return result == CUDA_SUCCESS ? pool->GetAttribute(attribute, value) : result;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  std::shared_ptr<MemoryPool> pool;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindPool(handle, &pool);
  return result == CUDA_SUCCESS ? pool->SetAttribute(attribute, value) : result;
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t) {
  std::shared_ptr<MemoryPool> pool;
  return FindPool(handle, &pool);
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* map, size_t count) {
  std::shared_ptr<MemoryPool> pool;
  const CUresult result = FindPool(handle, &pool);
  if (result != CUDA_SUCCESS) return result;
  for (size_t i = 0; i < count; ++i) {
    if (map == nullptr || map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
      return CUDA_ERROR_INVALID_VALUE;
    if (Driver::Get().device(map[i].location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  }
  return CUDA_SUCCESS;  // every device reaches all memory anyway
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle,
                            CUmemLocation* location) {
  std::shared_ptr<MemoryPool> pool;
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindPool(handle, &pool);
  if (result == CUDA_SUCCESS) *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return result;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice ordinal) {
  Device* device = nullptr;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindDevice(ordinal, &device);
  if (result == CUDA_SUCCESS) *out = device->default_pool()->handle();
  return result;
}

CUresult cuDeviceGetMemPool(CUmemoryPool* out, CUdevice ordinal) {
  Device* device = nullptr;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindDevice(ordinal, &device);
  if (result == CUDA_SUCCESS) *out = device->current_pool()->handle();
  return result;
}

CUresult cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool handle) {
  Device* device = nullptr;
  std::shared_ptr<MemoryPool> pool;
  CUresult result = FindDevice(ordinal, &device);
  if (result == CUDA_SUCCESS) result = FindPool(handle, &pool);
  if (result != CUDA_SUCCESS) return result;
  if (&pool->device() != device)
    return Fail(CUDA_ERROR_INVALID_VALUE, "the pool is another device's");
  device->SetCurrentPool(pool);
  return CUDA_SUCCESS;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* out, CUmemLocation* location,
                                CUmemAllocationType type) {
  Device* device = nullptr;
  const CUresult result = FindDeviceAt(location, type, &device);
  return result == CUDA_SUCCESS ? api::cuDeviceGetDefaultMemPool(out, device->ordinal()) : result;
}

CUresult cuMemGetMemPool(CUmemoryPool* out, CUmemLocation* location, CUmemAllocationType type) {
  Device* device = nullptr;
  const CUresult result = FindDeviceAt(location, type, &device);
  return result == CUDA_SUCCESS ? api::cuDeviceGetMemPool(out, device->ordinal()) : result;
}

CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  Device* device = nullptr;
  const CUresult result = FindDeviceAt(location, type, &device);
  return result == CUDA_SUCCESS ? api::cuDeviceSetMemPool(device->ordinal(), pool) : result;
}

}  // namespace softgpu::api
