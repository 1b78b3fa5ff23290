#include "softgpu/driver/context_limits.h"

#include "base/find.h"
#include "softgpu/driver/device.h"
#include "softgpu/driver/device_memory.h"
#include "softgpu/driver/error_log.h"

namespace softgpu {
namespace {

constexpr size_t kFetchGranularityMax = 128;

}  // namespace

ContextLimits::ContextLimits(Device* device, uint64_t context_id)
    : device_(device),
      context_id_(context_id),
      limits_{{CU_LIMIT_STACK_SIZE, 1024},
              {CU_LIMIT_PRINTF_FIFO_SIZE, 1u << 20},
              {CU_LIMIT_MALLOC_HEAP_SIZE, 8u << 20},
              {CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2},
              {CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048},
              {CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64},
              {CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0}} {}

CUresult ContextLimits::Get(CUlimit limit, size_t* value) const {
  base::MutexLock lock(&mutex_);
  const size_t* const kept = base::FindOrNull(limits_, limit);
  if (kept == nullptr) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *value = *kept;
  return CUDA_SUCCESS;
}

CUresult ContextLimits::Set(CUlimit limit, size_t value) {
  base::MutexLock lock(&mutex_);
  size_t* const kept = base::FindOrNull(limits_, limit);
  if (kept == nullptr) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  if (limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY && value > kFetchGranularityMax)
    return CUDA_ERROR_INVALID_VALUE;
  if (limit == CU_LIMIT_MALLOC_HEAP_SIZE && heap_ != nullptr) {
    return Fail(CUDA_ERROR_INVALID_VALUE,
                "a kernel that uses malloc or free has been launched: set the size of their heap "
                "before the first one");
  }
  *kept = value;
  return CUDA_SUCCESS;
}

std::shared_ptr<DeviceHeap> ContextLimits::Heap() {
  base::MutexLock lock(&mutex_);
  if (heap_ == nullptr) {
    const size_t bytes = limits_.at(CU_LIMIT_MALLOC_HEAP_SIZE);
    std::shared_ptr<Allocation> memory;
    if (bytes != 0) {
      memory = AllocateDeviceMemory(device_, Allocation::Kind::kVariable, bytes, context_id_);
      if (memory == nullptr) return nullptr;
    }
    const uint64_t base = memory == nullptr ? 0 : memory->base;
    heap_.reset(new HeapMemory{std::move(memory), DeviceHeap(base, bytes)});
  }
  return {heap_, &heap_->heap};
}

void ContextLimits::DropHeap() {
  base::MutexLock lock(&mutex_);
  heap_.reset();
}

}  // namespace softgpu
