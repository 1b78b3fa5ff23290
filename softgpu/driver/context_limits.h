// What cuCtxSetLimit sets for a context, and the heap that one of the limits is for: the memory of
// malloc in kernels.
//
// The heap's memory is taken when a kernel that may use it is launched first, as CUDA documents,
// and belongs to the context from then on. Thread safety: every function may be called from any
// thread.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>

#include "base/mutex.h"
#include "softgpu/driver/memory_map.h"
#include "softgpu/exec/device_heap.h"

namespace softgpu {

class Device;

class ContextLimits {
 public:
  ContextLimits(Device* device, uint64_t context_id);

  CUresult Get(CUlimit limit, size_t* value) const;
  // CUDA_ERROR_INVALID_VALUE for the heap's limit once there is a heap.
  CUresult Set(CUlimit limit, size_t value);
  // The heap, which a launch holds on to while its kernel runs. Null when it does not fit into the
  // device's memory.
  std::shared_ptr<DeviceHeap> Heap();
  void DropHeap();

 private:
  struct HeapMemory {
    std::shared_ptr<Allocation> memory;  // null: the limit is 0
    DeviceHeap heap;
  };

  Device* const device_;
  const uint64_t context_id_;
  mutable base::Mutex mutex_;
  std::map<CUlimit, size_t> limits_ GUARDED_BY(mutex_);
  std::shared_ptr<HeapMemory> heap_ GUARDED_BY(mutex_);
};

}  // namespace softgpu
