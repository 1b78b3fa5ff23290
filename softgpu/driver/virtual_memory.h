// Virtual memory management: reserved address ranges, and extents mapped into them.
//
// A hint inside the slots or this process's own part of the window is honoured when the range is
// free; otherwise the driver chooses, as the manual allows. Mappings start without access;
// SetAccess opens them. Thread safety: every function may be called from any thread.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>

#include "base/mutex.h"
#include "softgpu/driver/extent.h"
#include "softgpu/driver/heap.h"
#include "softgpu/driver/memory_map.h"

namespace softgpu {

class VirtualMemory {
 public:
  // `heap` supplies addresses when no hint can be honoured. Both outlive this object.
  VirtualMemory(Heap* heap, MemoryMap* map) : heap_(heap), map_(map) {}

  CUresult Reserve(uint64_t bytes, uint64_t align, uint64_t hint, uint64_t* address);
  CUresult Free(uint64_t address, uint64_t bytes);

  CUresult Map(uint64_t address, uint64_t bytes, std::shared_ptr<Extent> extent);
  CUresult Unmap(uint64_t address, uint64_t bytes);
  CUresult SetAccess(uint64_t address, uint64_t bytes, unsigned long long access);

  // The reservation around `address`; false when there is none.
  bool FindReservation(uint64_t address, uint64_t* base, uint64_t* bytes) const;

 private:
  struct Reservation {
    uint64_t bytes;
    bool in_heap;  // carved out of heap_'s span, else a mapping of its own
  };

  bool ReserveAt(uint64_t hint, uint64_t bytes, bool* in_heap);
  bool Reserved(uint64_t address, uint64_t bytes) const REQUIRES(mutex_);

  Heap* const heap_;
  MemoryMap* const map_;
  mutable base::Mutex mutex_;
  std::map<uint64_t, Reservation> reservations_ GUARDED_BY(mutex_);  // by base
};

}  // namespace softgpu
