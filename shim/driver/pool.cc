// Stream-ordered allocation. A pool is an owner of ranges in the session's arena
// (shim/arena/persistent.h): an allocation is usable at once, a freed block is taken again at once
// for the same stream and behind a join for another, and what is empty stays reserved up to the
// release threshold until the program synchronises. Reserved memory is not free in any query.
//
// The switches about re-use are kept and have nothing to act on: addresses are handed out by the
// client, which knows the order of its calls and joins streams where that order does not suffice.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "shim/call_trace.h"
#include "shim/client.h"
#include "shim/devices.h"
#include "shim/driver/local.h"
#include "shim/driver/ready.h"
#include "shim/graphs/capture.h"
#include "shim/graphs/memory.h"
#include "shim/handle_table.h"
#include "shim/lock_order.h"
#include "shim/memory.h"
#include "shim/state.h"
#include "shim/streams.h"

namespace local {
namespace {

using shim::Client;
using shim::Context;
using shim::Memory;
using shim::State;
using shim::Stream;
using shim::Streams;

using shim::DeviceMemory;
using shim::graphs::GraphMemory;

struct Pool {
  int device = 0;
  bool is_default = false;
  uint32_t owner = 0;      // in DeviceMemory
  uint64_t bytes_max = 0;  // 0: no limit but the device's
  std::atomic<int> reuse[3] = {1, 1, 1};
};

struct Pools {
  shim::HandleTable<Pool, ipc::HandleKind::kMemoryPool> table;
  base::Mutex mutex ACQUIRED_BEFORE(shim::lock_order::kSending);
  uint64_t of_device[ipc::limits::kLegacySlots] GUARDED_BY(mutex) = {};  // the default pools
  // Written under the mutex.
  std::atomic<uint64_t> current[ipc::limits::kLegacySlots] = {};  // 0: not asked for yet
  std::atomic<uint32_t> last_owner{shim::arena::Persistent::kProgram};

  static Pools& Process() {
    static Pools* const pools = new Pools;
    return *pools;
  }
  Pool* Create(int ordinal, uint64_t* value) {
    Pool* const pool = table.Create(value);
    if (pool == nullptr) return nullptr;
    pool->device = ordinal;
    pool->owner = last_owner.fetch_add(1) + 1;
    return pool;
  }
  uint64_t Default(int ordinal) REQUIRES(mutex) {
    if (of_device[ordinal] == 0) {
      Create(ordinal, &of_device[ordinal])->is_default = true;
      current[ordinal].store(of_device[ordinal], std::memory_order_release);
    }
    return of_device[ordinal];
  }
  // What cuMemAllocAsync takes from, and its name.
  Pool* Current(int ordinal, uint64_t* value) {
    *value = current[ordinal].load(std::memory_order_acquire);
    if (Pool* const pool = table.Find(*value); pool != nullptr) return pool;
    // The first one, or the pool is being destroyed.
    const base::MutexLock lock(&mutex);
    Default(ordinal);
    *value = current[ordinal];
    return table.Find(*value);
  }
};

// A pool's name is a handle of the client's table: the worker knows nothing of pools.
CUmemoryPool ProgramPool(uint64_t value) { return reinterpret_cast<CUmemoryPool>(value); }

CUresult FindPool(CUmemoryPool program, Pool** pool) {
  if (const CUresult result = Client::Process().Ready(); result != CUDA_SUCCESS) return result;
  *pool = Pools::Process().table.Find(reinterpret_cast<uint64_t>(program));
  return *pool != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult OrdinalOfLocation(const CUmemLocation* location, int* ordinal) {
  if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  return OrdinalOf(location->id, ordinal);
}

bool Captures(const Stream& stream) {
  return shim::graphs::AnyCapture() &&
         shim::graphs::AllCaptures().Has(shim::graphs::CaptureStreamOf(stream));
}

// In a stream that captures the graph allocates.
CUresult Capture(const Context& of_pool, uint64_t context, size_t bytes, const Stream& stream,
                 CUdeviceptr* address) {
  CUDA_MEM_ALLOC_NODE_PARAMS params = {};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE,
                               {shim::Devices::Process().Visible(of_pool.device)}};
  params.bytesize = bytes;
  std::shared_ptr<GraphMemory> memory;
  CUresult result = GraphMemory::Create(of_pool, context, params, &memory);
  if (result != CUDA_SUCCESS) return result;
  result = shim::graphs::CaptureWork(stream, shim::graphs::AllocateWork{memory})
               .value_or(CUDA_ERROR_UNKNOWN);
  if (result == CUDA_SUCCESS) *address = memory->address();
  return result;
}

// From a pool, or the current one of the stream's device.
CUresult Allocate(CUdeviceptr* address, size_t bytes, CUmemoryPool program, CUstream on) {
  const shim::TracedSpan span(program == nullptr ? ipc::Op::cuMemAllocAsync
                                                 : ipc::Op::cuMemAllocFromPoolAsync);
  Context* context = nullptr;
  uint64_t context_value = 0, pool_value = reinterpret_cast<uint64_t>(program);
  Stream* stream = nullptr;
  State& state = State::Process();
  if (const CUresult result = state.Current(&context, &context_value); result != CUDA_SUCCESS)
    return result;
  if (const CUresult result = Streams::Process().Use(on, *context, context_value, &stream);
      result != CUDA_SUCCESS) {
    return result;
  }
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const Pool* const pool = program != nullptr
                               ? Pools::Process().table.Find(pool_value)
                               : Pools::Process().Current(stream->device, &pool_value);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context of_pool;  // its memory may be another device's than the current context
  of_pool.device = pool->device;
  of_pool.wire =
      pool->device == context->device ? context->wire : State::WireOfDevice(pool->device);
  if (Captures(*stream)) return Capture(of_pool, context_value, bytes, *stream, address);
  if (const auto refused = shim::graphs::RefuseCapture(*stream)) return *refused;
  if (pool->bytes_max != 0 &&
      DeviceMemory::Process().persistent().UsageOf(pool->device, pool->owner).used + bytes >
          pool->bytes_max) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  uint64_t made = 0;
  const CUresult result = Memory::Allocate(
      of_pool, context_value, bytes, {pool->owner, Streams::FenceSlot(*stream), pool_value}, &made);
  if (result == CUDA_SUCCESS) *address = made;
  return result;
}

bool IsReuse(CUmemPool_attribute attribute) {
  return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
         attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

}  // namespace

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream program) {
  return Allocate(address, bytes, nullptr, program);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool program,
                                 CUstream stream) {
  Pool* pool = nullptr;
  if (const CUresult result = FindPool(program, &pool); result != CUDA_SUCCESS) return result;
  return Allocate(address, bytes, program, stream);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream program) {
  Stream* stream = nullptr;
  if (const CUresult result = Streams::Process().UseCurrent(program, &stream);
      result != CUDA_SUCCESS)
    return result;
  if (address == 0) return CUDA_SUCCESS;
  if (Captures(*stream) && GraphMemory::IsFree(address)) {
    return shim::graphs::CaptureWork(*stream, shim::graphs::FreeWork{address})
        .value_or(CUDA_ERROR_UNKNOWN);
  }
  if (const auto refused = shim::graphs::RefuseWork(*stream)) return *refused;
  if (GraphMemory::Free(address)) return CUDA_SUCCESS;
  return Memory::FreeOrdered(address, *stream);
}

// --- pools ---------------------------------------------------------------------------------------

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  int ordinal = 0;
  if (const CUresult result = OrdinalOf(device, &ordinal); result != CUDA_SUCCESS) return result;
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Pools& pools = Pools::Process();
  const base::MutexLock lock(&pools.mutex);
  *pool = ProgramPool(pools.Default(ordinal));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  int ordinal = 0;
  if (const CUresult result = OrdinalOf(device, &ordinal); result != CUDA_SUCCESS) return result;
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Pools& pools = Pools::Process();
  const base::MutexLock lock(&pools.mutex);
  pools.Default(ordinal);
  *pool = ProgramPool(pools.current[ordinal]);
  return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool program) {
  int ordinal = 0;
  Pool* pool = nullptr;
  if (const CUresult result = OrdinalOf(device, &ordinal); result != CUDA_SUCCESS) return result;
  if (const CUresult result = FindPool(program, &pool); result != CUDA_SUCCESS) return result;
  if (pool->device != ordinal) return CUDA_ERROR_INVALID_VALUE;
  Pools& pools = Pools::Process();
  const base::MutexLock lock(&pools.mutex);
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
  Pool* const made = Pools::Process().Create(ordinal, &value);
  if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  made->bytes_max = properties->maxSize;
  *pool = ProgramPool(value);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool program) {
  Pool* pool = nullptr;
  if (const CUresult result = FindPool(program, &pool); result != CUDA_SUCCESS) return result;
  if (pool->is_default) return CUDA_ERROR_INVALID_VALUE;
  Pools& pools = Pools::Process();
  const base::MutexLock lock(&pools.mutex);
  if (pools.current[pool->device] == reinterpret_cast<uint64_t>(program)) {
    pools.current[pool->device] = pools.of_device[pool->device];
  }
  // Its blocks live on until the program frees them.
  DeviceMemory::Process().persistent().EndOwner(pool->device, pool->owner);
  pools.table.Destroy(reinterpret_cast<uint64_t>(program));
  return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool program, size_t bytes_kept) {
  Pool* pool = nullptr;
  if (const CUresult result = FindPool(program, &pool); result != CUDA_SUCCESS) return result;
  DeviceMemory::Process().persistent().Release(pool->device, pool->owner, bytes_kept);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool program, CUmemPool_attribute attribute, void* value) {
  Pool* pool = nullptr;
  if (const CUresult result = FindPool(program, &pool); result != CUDA_SUCCESS) return result;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (IsReuse(attribute)) {
    int flag = 0;
    std::memcpy(&flag, value, sizeof flag);
    pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = flag;
    return CUDA_SUCCESS;
  }
  shim::PersistentMemory& memory = DeviceMemory::Process().persistent();
  uint64_t wide = 0;
  std::memcpy(&wide, value, sizeof wide);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      memory.SetThreshold(pool->device, pool->owner, wide);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (wide != 0) return CUDA_ERROR_INVALID_VALUE;
      memory.ResetHigh(pool->device, pool->owner, attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH);
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuMemPoolGetAttribute(CUmemoryPool program, CUmemPool_attribute attribute, void* value) {
  Pool* pool = nullptr;
  if (const CUresult result = FindPool(program, &pool); result != CUDA_SUCCESS) return result;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  shim::PersistentMemory& memory = DeviceMemory::Process().persistent();
  const shim::arena::Persistent::Usage usage = memory.UsageOf(pool->device, pool->owner);
  uint64_t wide = 0;
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      wide = memory.ThresholdOf(pool->device, pool->owner);
      break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      wide = usage.reserved;
      break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      wide = usage.reserved_high;
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      wide = usage.used;
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      wide = usage.used_high;
      break;
    default: {
      if (!IsReuse(attribute)) return CUDA_ERROR_INVALID_VALUE;
      const int flag = pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
      std::memcpy(value, &flag, sizeof flag);
      return CUDA_SUCCESS;
    }
  }
  std::memcpy(value, &wide, sizeof wide);
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
