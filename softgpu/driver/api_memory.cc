// Device, managed and pinned memory.
#include <algorithm>
#include <memory>
#include <utility>

#include "softgpu/driver/api.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/device.h"
#include "softgpu/driver/device_memory.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/handles.h"
#include "softgpu/driver/memory_pool.h"

namespace softgpu::api {
namespace {

using Kind = Allocation::Kind;

constexpr size_t kPitchAlignment = 512;

CUresult Allocate(Kind kind, size_t bytes, CUdeviceptr* out) {
  std::shared_ptr<Context> context;
  if (out == nullptr || bytes == 0)
    return Fail(CUDA_ERROR_INVALID_VALUE, "0 bytes can't be allocated");
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  Device& device = context->device();
  const std::shared_ptr<Allocation> memory =
      AllocateDeviceMemory(&device, kind, bytes, context->id());
  if (memory == nullptr) {
    return Fail(CUDA_ERROR_OUT_OF_MEMORY,
                std::to_string(bytes) + " bytes asked, " +
                    std::to_string(device.memory().total() - device.memory().used()) + " free");
  }
  *out = memory->base;
  return CUDA_SUCCESS;
}

CUresult AllocateHost(size_t bytes, unsigned flags, void** out) {
  std::shared_ptr<Context> context;
  const unsigned known =
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if (out == nullptr || bytes == 0 || (flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Allocation> memory =
      AllocateHostMemory(&context->device(), bytes, flags, context->id());
  if (memory == nullptr) return Fail(CUDA_ERROR_OUT_OF_MEMORY, "no room for pinned memory");
  *out = reinterpret_cast<void*>(memory->base);
  return CUDA_SUCCESS;
}

// Removes the record that starts at `base`, once all work that may use it is done.
CUresult Free(uint64_t base, bool (*matches)(const Allocation&), const char* what) {
  std::shared_ptr<Context> context;
  CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Allocation> found = Driver::Get().memory_map().Find(base);
  if (found == nullptr || found->base != base || !matches(*found)) {
    return Fail(CUDA_ERROR_INVALID_VALUE, what);
  }
  for (const std::shared_ptr<Context>& other : Driver::Get().contexts.All()) other->Synchronize();
  result = context->Fault();
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Allocation> removed = Driver::Get().memory_map().Remove(base, matches);
  if (removed != nullptr && removed->pool != nullptr) {
    removed->pool->Freed(Heap::RoundUp(removed->bytes));
  }
  return CUDA_SUCCESS;
}

bool IsDeviceMemory(const Allocation& allocation) {
  return allocation.kind == Kind::kDevice || allocation.kind == Kind::kManaged;
}

bool IsPinned(const Allocation& allocation) { return allocation.kind == Kind::kPinned; }

bool IsRegistered(const Allocation& allocation) { return allocation.kind == Kind::kRegistered; }

}  // namespace

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  std::shared_ptr<Context> context;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  const MemoryLimit& memory = context->device().memory();
  if (free != nullptr) *free = memory.total() - memory.used();
  if (total != nullptr) *total = memory.total();
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) {
  return Allocate(Kind::kDevice, bytes, out);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width, size_t height,
                            unsigned int element_bytes) {
  if (pitch == nullptr || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
  if (element_bytes != 4 && element_bytes != 8 && element_bytes != 16)
    return CUDA_ERROR_INVALID_VALUE;
  *pitch = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
  return Allocate(Kind::kDevice, *pitch * height, out);
}

CUresult cuMemAllocManaged(CUdeviceptr* out, size_t bytes, unsigned int flags) {
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
  return Allocate(Kind::kManaged, bytes, out);
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  if (address == 0) return CUDA_SUCCESS;
  return Free(address, &IsDeviceMemory, "this is not the start of allocated device memory");
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  std::shared_ptr<Context> context;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Allocation> found = Driver::Get().memory_map().Find(address);
  if (found == nullptr) return Fail(CUDA_ERROR_NOT_FOUND, "the address is not allocated memory");
  if (base != nullptr) *base = found->base;
  if (bytes != nullptr) *bytes = found->bytes;
  return CUDA_SUCCESS;
}

// --- pinned memory

CUresult cuMemHostAlloc(void** out, size_t bytes, unsigned int flags) {
  return AllocateHost(bytes, flags, out);
}

CUresult cuMemAllocHost_v2(void** out, size_t bytes) {
  return AllocateHost(bytes, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE, out);
}

CUresult cuMemFreeHost(void* pointer) {
  if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Free(reinterpret_cast<uint64_t>(pointer), &IsPinned,
              "this is not the start of pinned memory");
}

CUresult cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned int flags) {
  std::shared_ptr<Context> context;
  const unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                         CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
  if (pointer == nullptr || bytes == 0 || (flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Allocation> memory = std::make_shared<Allocation>();
  memory->kind = Kind::kRegistered;
  memory->base = reinterpret_cast<uint64_t>(pointer);
  memory->bytes = bytes;
  memory->device = context->device().ordinal();
  memory->context_id = context->id();
  memory->id = MemoryMap::NextId();
  memory->host_flags = flags;
  if (!Driver::Get().memory_map().Add(memory)) {
    return Fail(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                "part of the range is registered already");
  }
  return CUDA_SUCCESS;
}

CUresult cuMemHostRegister(void* pointer, size_t bytes, unsigned int flags) {
  return api::cuMemHostRegister_v2(pointer, bytes, flags);
}

CUresult cuMemHostUnregister(void* pointer) {
  if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result =
      Free(reinterpret_cast<uint64_t>(pointer), &IsRegistered, "this memory is not registered");
  return result == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : result;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* pointer, unsigned int flags) {
  std::shared_ptr<Context> context;
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  const uint64_t address = reinterpret_cast<uint64_t>(pointer);
  const std::shared_ptr<Allocation> found = Driver::Get().memory_map().Find(address);
  if (found == nullptr || !(found->host() || found->kind == Kind::kManaged)) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "this is neither pinned nor registered memory");
  }
  *out = address;  // one address space for host and devices
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int* flags, void* pointer) {
  std::shared_ptr<Context> context;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Allocation> found =
      Driver::Get().memory_map().Find(reinterpret_cast<uint64_t>(pointer));
  if (found == nullptr || !found->host()) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "this is neither pinned nor registered memory");
  }
  *flags = found->host_flags;
  return CUDA_SUCCESS;
}

}  // namespace softgpu::api
