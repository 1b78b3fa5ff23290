#include "softgpu/driver/memory_pool.h"

#include "softgpu/driver/device.h"
#include "softgpu/driver/device_memory.h"
#include "softgpu/driver/memory_map.h"

namespace softgpu {
namespace {

void RaiseTo(std::atomic<uint64_t>* high, uint64_t value) {
  uint64_t seen = high->load();
  while (seen < value && !high->compare_exchange_weak(seen, value)) {
  }
}

}  // namespace

std::shared_ptr<Allocation> MemoryPool::Allocate(uint64_t bytes, uint64_t context_id) {
  const uint64_t taken = Heap::RoundUp(bytes);
  if (bytes_max_ != 0 && used_.load() + taken > bytes_max_) return nullptr;
  std::shared_ptr<Allocation> allocation =
      AllocateDeviceMemory(device_, Allocation::Kind::kDevice, bytes, context_id);
  if (allocation == nullptr) return nullptr;
  allocation->pool = shared_from_this();
  RaiseTo(&used_high_, used_.fetch_add(taken) + taken);
  return allocation;
}

CUresult MemoryPool::GetAttribute(CUmemPool_attribute attribute, void* value) const {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      *static_cast<int*>(value) =
          reuse_[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      *static_cast<cuuint64_t*>(value) = release_threshold_;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      *static_cast<cuuint64_t*>(value) = used_;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      *static_cast<cuuint64_t*>(value) = used_high_;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult MemoryPool::SetAttribute(CUmemPool_attribute attribute, const void* value) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      reuse_[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] =
          *static_cast<const int*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      release_threshold_ = *static_cast<const cuuint64_t*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (*static_cast<const cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      used_high_ = used_.load();
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace softgpu
