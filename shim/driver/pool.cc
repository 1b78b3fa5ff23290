// Stream-ordered allocation. Pools are names: all memory comes from the session's arena, an
// allocation is usable at once in every stream, and a free takes effect when its stream gets there.
#include <array>
#include <atomic>
#include <cstring>

#include "shim/devices.h"
#include "shim/driver/local.h"
#include "shim/handle_table.h"
#include "shim/memory.h"
#include "shim/state.h"

namespace local {
namespace {

using shim::Allocation;
using shim::Client;
using shim::Context;
using shim::Memory;
using shim::State;
using shim::Stream;

struct Pool {
  int device = 0;
  bool is_default = false;
  std::array<std::atomic<uint64_t>, CU_MEMPOOL_ATTR_USED_MEM_HIGH + 1> attribute = {};
};

struct Pools {
  shim::HandleTable<Pool, ipc::HandleKind::kMemoryPool> table;
  std::mutex mutex;  // of what follows
  uint64_t of_device[ipc::limits::kLegacySlots] = {};
  uint64_t current[ipc::limits::kLegacySlots] = {};

  static Pools& Process() {
    static Pools* const pools = new Pools;
    return *pools;
  }
  uint64_t Default(int ordinal) {
    if (of_device[ordinal] == 0) {
      Pool* const pool = table.Create(&of_device[ordinal]);
      pool->device = ordinal;
      pool->is_default = true;
      for (const CUmemPool_attribute on : {CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES,
                                           CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
                                           CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES}) {
        pool->attribute[on] = 1;
      }
      current[ordinal] = of_device[ordinal];
    }
    return of_device[ordinal];
  }
};

CUmemoryPool Program(uint64_t value) { return reinterpret_cast<CUmemoryPool>(value); }

CUresult FindPool(CUmemoryPool program, Pool** pool) {
  if (const CUresult result = Client::Process().Ready(); result != CUDA_SUCCESS) return result;
  *pool = Pools::Process().table.Find(reinterpret_cast<uint64_t>(program));
  return *pool != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult OrdinalOf(CUdevice device, int* ordinal) {
  if (const CUresult result = Client::Process().Ready(); result != CUDA_SUCCESS) return result;
  return shim::Devices::Process().Ordinal(device, ordinal);
}

bool IsInt(CUmemPool_attribute attribute) {
  return attribute == CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
         attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC ||
         attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

bool IsKnown(CUmemPool_attribute attribute) {
  return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
         attribute <= CU_MEMPOOL_ATTR_USED_MEM_HIGH;
}

CUresult OrdinalOfLocation(const CUmemLocation* location, int* ordinal) {
  if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  return OrdinalOf(location->id, ordinal);
}

}  // namespace

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream program) {
  Context* context = nullptr;
  uint64_t context_value = 0;
  Stream* stream = nullptr;
  if (const CUresult result = State::Process().Current(&context, &context_value);
      result != CUDA_SUCCESS) {
    return result;
  }
  if (const CUresult result =
          State::Process().FindStream(program, *context, context_value, &stream);
      result != CUDA_SUCCESS) {
    return result;
  }
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t made = 0;
  const CUresult result = Memory::Allocate(*context, context_value, bytes, &made);
  if (result == CUDA_SUCCESS) *address = made;
  return result;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool program,
                                 CUstream stream) {
  Pool* pool = nullptr;
  if (const CUresult result = FindPool(program, &pool); result != CUDA_SUCCESS) return result;
  return local::cuMemAllocAsync(address, bytes, stream);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream program) {
  Stream* stream = nullptr;
  if (const CUresult result = State::Process().CurrentStream(program, &stream);
      result != CUDA_SUCCESS)
    return result;
  if (address == 0) return CUDA_SUCCESS;
  Allocation allocation;
  allocation.base = address;
  return Memory::FreeOrdered(allocation, *stream);
}

// --- pools ---------------------------------------------------------------------------------------

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  int ordinal = 0;
  if (const CUresult result = OrdinalOf(device, &ordinal); result != CUDA_SUCCESS) return result;
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Pools& pools = Pools::Process();
  const std::lock_guard<std::mutex> lock(pools.mutex);
  *pool = Program(pools.Default(ordinal));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  int ordinal = 0;
  if (const CUresult result = OrdinalOf(device, &ordinal); result != CUDA_SUCCESS) return result;
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Pools& pools = Pools::Process();
  const std::lock_guard<std::mutex> lock(pools.mutex);
  pools.Default(ordinal);
  *pool = Program(pools.current[ordinal]);
  return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool program) {
  int ordinal = 0;
  Pool* pool = nullptr;
  if (const CUresult result = OrdinalOf(device, &ordinal); result != CUDA_SUCCESS) return result;
  if (const CUresult result = FindPool(program, &pool); result != CUDA_SUCCESS) return result;
  if (pool->device != ordinal) return CUDA_ERROR_INVALID_VALUE;
  Pools& pools = Pools::Process();
  const std::lock_guard<std::mutex> lock(pools.mutex);
  pools.Default(ordinal);
  pools.current[ordinal] = reinterpret_cast<uint64_t>(program);
  return CUDA_SUCCESS;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType) {
  int ordinal = 0;
  if (const CUresult result = OrdinalOfLocation(location, &ordinal); result != CUDA_SUCCESS)
    return result;
  return local::cuDeviceGetDefaultMemPool(pool, location->id);
}
CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType) {
  int ordinal = 0;
  if (const CUresult result = OrdinalOfLocation(location, &ordinal); result != CUDA_SUCCESS)
    return result;
  return local::cuDeviceGetMemPool(pool, location->id);
}
CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType, CUmemoryPool pool) {
  int ordinal = 0;
  if (const CUresult result = OrdinalOfLocation(location, &ordinal); result != CUDA_SUCCESS)
    return result;
  return local::cuDeviceSetMemPool(location->id, pool);
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  if (pool == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
  int ordinal = 0;
  if (const CUresult result = OrdinalOfLocation(&properties->location, &ordinal);
      result != CUDA_SUCCESS) {
    return result;
  }
  uint64_t value = 0;
  Pool* const made = Pools::Process().table.Create(&value);
  if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  made->device = ordinal;
  *pool = Program(value);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool program) {
  Pool* pool = nullptr;
  if (const CUresult result = FindPool(program, &pool); result != CUDA_SUCCESS) return result;
  if (pool->is_default) return CUDA_ERROR_INVALID_VALUE;
  Pools& pools = Pools::Process();
  const std::lock_guard<std::mutex> lock(pools.mutex);
  if (pools.current[pool->device] == reinterpret_cast<uint64_t>(program)) {
    pools.current[pool->device] = pools.of_device[pool->device];
  }
  pools.table.Destroy(reinterpret_cast<uint64_t>(program));
  return CUDA_SUCCESS;
}

// Nothing is held back in a pool, so there is nothing to trim.
CUresult cuMemPoolTrimTo(CUmemoryPool program, size_t) {
  Pool* pool = nullptr;
  return FindPool(program, &pool);
}

CUresult cuMemPoolSetAttribute(CUmemoryPool program, CUmemPool_attribute attribute, void* value) {
  Pool* pool = nullptr;
  if (const CUresult result = FindPool(program, &pool); result != CUDA_SUCCESS) return result;
  if (value == nullptr || !IsKnown(attribute)) return CUDA_ERROR_INVALID_VALUE;
  uint64_t wide = 0;
  std::memcpy(&wide, value, IsInt(attribute) ? sizeof(int) : sizeof wide);
  pool->attribute[attribute] = wide;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool program, CUmemPool_attribute attribute, void* value) {
  Pool* pool = nullptr;
  if (const CUresult result = FindPool(program, &pool); result != CUDA_SUCCESS) return result;
  if (value == nullptr || !IsKnown(attribute)) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t wide = pool->attribute[attribute];
  std::memcpy(value, &wide, IsInt(attribute) ? sizeof(int) : sizeof wide);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool program, const CUmemAccessDesc* access, size_t count) {
  Pool* pool = nullptr;
  if (const CUresult result = FindPool(program, &pool); result != CUDA_SUCCESS) return result;
  for (size_t i = 0; i < count; ++i) {
    int ordinal = 0;
    if (const CUresult result = OrdinalOfLocation(&access[i].location, &ordinal);
        result != CUDA_SUCCESS) {
      return result;
    }
    // Only the device of the pool can use it, and always can.
    const bool wanted = access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
    if (wanted != (ordinal == pool->device)) return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool program,
                            CUmemLocation* location) {
  Pool* pool = nullptr;
  int ordinal = 0;
  if (const CUresult result = FindPool(program, &pool); result != CUDA_SUCCESS) return result;
  if (const CUresult result = OrdinalOfLocation(location, &ordinal); result != CUDA_SUCCESS)
    return result;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags =
      ordinal == pool->device ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

}  // namespace local
