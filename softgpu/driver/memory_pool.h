// Stream-ordered memory: cuMemAllocAsync and its pools.
//
// A block is taken at the call, which any stream order allows, and given back when the stream
// reaches the free. So a pool holds no memory that is not in use; its release threshold is kept and
// has nothing to act on. Thread safety: every function may be called from any thread.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>

namespace softgpu {

class Device;
struct Allocation;

class MemoryPool : public std::enable_shared_from_this<MemoryPool> {
 public:
  explicit MemoryPool(Device* device, uint64_t bytes_max = 0)
      : device_(device), bytes_max_(bytes_max) {}

  Device& device() const { return *device_; }
  CUmemoryPool handle() { return reinterpret_cast<CUmemoryPool>(this); }

  // Null when the pool's or the device's memory is used up.
  std::shared_ptr<Allocation> Allocate(uint64_t bytes, uint64_t context_id);
  void Freed(uint64_t bytes) { used_.fetch_sub(bytes); }

  CUresult GetAttribute(CUmemPool_attribute attribute, void* value) const;
  CUresult SetAttribute(CUmemPool_attribute attribute, const void* value);

 private:
  Device* const device_;
  const uint64_t bytes_max_;  // 0: the device's limit alone
  std::atomic<uint64_t> used_{0}, used_high_{0};
  std::atomic<uint64_t> release_threshold_{0};
  std::atomic<int> reuse_[3] = {1, 1, 1};
};

}  // namespace softgpu
