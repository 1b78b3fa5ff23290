// Managed memory (cuMemAllocManaged): memory of the host that the program and the device have at
// one address, as pinned memory is. Pages do not move: kernels read and write the host's, over the
// bus where there is one. So prefetching and advice have nothing to do, and the program may touch
// the memory while kernels run.
//
// Small blocks share ranges of the pinned window, since each range is a mapping of the worker's and
// programs allocate managed memory object by object. It is the machine's memory, as pinned memory
// is, and counts neither as device memory nor towards a job's limit. It stays where it is when the
// session is swapped out or its worker is lost.
// Thread safety: all methods.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "base/mutex.h"
#include "ipc/calls/vendor.h"
#include "shim/allocations.h"
#include "shim/arena/persistent.h"
#include "shim/lock_order.h"

namespace shim {

class ManagedMemory {
 public:
  static ManagedMemory& Process();

  CUresult Allocate(uint32_t wire, int device, size_t bytes, arena::Persistent::Block* block);
  // Waits for the device: work in flight may use the memory. As cuMemFree does.
  CUresult Free(const Allocation& allocation);

 private:
  base::Mutex mutex_ ACQUIRED_AFTER(lock_order::kKeeping);
  std::map<int, arena::Persistent> of_device_ GUARDED_BY(mutex_);
};

}  // namespace shim
