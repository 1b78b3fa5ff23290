#include "shim/managed_memory.h"

#include <vector>

#include "shim/pinned_ranges.h"
#include "shim/state.h"
#include "shim/sync.h"

namespace shim {

using arena::Persistent;

ManagedMemory& ManagedMemory::Process() {
  static ManagedMemory* const managed = new ManagedMemory;
  return *managed;
}

// Another thread may take the range that this one has mapped: then one more is mapped.
CUresult ManagedMemory::Allocate(uint32_t wire, int device, size_t bytes,
                                 Persistent::Block* block) {
  Persistent::Request request;
  request.bytes = bytes;
  for (;;) {
    {
      const base::MutexLock lock(&mutex_);
      if (of_device_[device].Take(request, block)) return CUDA_SUCCESS;
    }
    arena::Range range = {0, Persistent::RangeBytesFor(bytes)};
    if (range.bytes < bytes) return CUDA_ERROR_OUT_OF_MEMORY;  // it was rounded beyond 2^64
    const CUresult result = MapPinned(wire, range.bytes, 0, &range.base);
    if (result != CUDA_SUCCESS) return result;
    const base::MutexLock lock(&mutex_);
    of_device_[device].AddRange(range);
  }
}

CUresult ManagedMemory::Free(const Allocation& allocation) {
  if (const CUresult result = SynchronizeDevice(allocation.device); result != CUDA_SUCCESS)
    return result;
  std::vector<arena::Range> unmap;
  {
    const base::MutexLock lock(&mutex_);
    of_device_[allocation.device].Give(allocation.block, {}, &unmap);
  }
  std::vector<PinnedSpare::Range> ranges;
  for (const arena::Range& range : unmap) ranges.push_back({range.base, range.bytes});
  return UnmapPinned(State::WireOfDevice(allocation.device), ranges);
}

}  // namespace shim
