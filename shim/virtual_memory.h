// The program's own virtual memory management (cuMemAddressReserve, cuMemCreate, cuMemMap, ...),
// over the session's arena.
//
// Reserved addresses are of the arena's persistent part. Physical memory is backed by the worker
// when it is created, as any range of the arena is, and so is counted, goes to the host and to
// another worker as every other range does (shim/arena/virtual_ranges.h says where it lies).
// Memory of the host, memory for other processes, read-only mappings and a second mapping of the
// same memory are refused with a sentence.
//
// Thread safety: all methods. One thread at a time asks the worker.
#pragma once

#include "ipc/calls/vendor.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "shim/arena/virtual_ranges.h"
#include "shim/lock_order.h"

namespace shim {

// 801, after one sentence on stderr.
CUresult RefuseVirtualMemory(std::atomic<bool>& said, const char* what);

class VirtualMemory {
 public:
  // REQUIRES, for all that follow: the client is connected.
  static VirtualMemory& Process();

  CUresult Reserve(uint64_t bytes, uint64_t alignment, uint64_t* address);
  CUresult FreeAddresses(uint64_t address, uint64_t bytes);

  // On the device of this position. `note` is the caller's.
  CUresult Create(int device, uint64_t bytes, uint64_t note, uint64_t* handle);
  CUresult Release(uint64_t handle);
  // A handle of what is mapped at the address.
  CUresult Retain(uint64_t address, uint64_t* handle);
  // Its device and note.
  CUresult Describe(uint64_t handle, int* device, uint64_t* note);

  CUresult Map(uint64_t address, uint64_t bytes, uint64_t handle);
  CUresult Unmap(uint64_t address, uint64_t bytes);
  // For kernels and copies on the device of this position.
  CUresult SetAccess(uint64_t address, uint64_t bytes, int device, unsigned long long access);
  // What SetAccess has said of the mapping there, for this device.
  CUresult AccessAt(uint64_t address, int device, unsigned long long* access);

  // The reservation around the address; false when there is none.
  bool FindReservation(uint64_t address, arena::Range* found);
  // The last context on the device ends, and with it all memory there.
  void OnContextReset(int device);

 private:
  using Id = arena::VirtualRanges::Id;
  using Memory = arena::VirtualRanges::Memory;

  VirtualMemory() = default;
  CUresult MakePlace(arena::Range range, Id but) REQUIRES(mutex_);
  CUresult Move(Id id, uint64_t place, bool home) REQUIRES(mutex_);
  CUresult Open(Id id) REQUIRES(mutex_);
  void Close(Id id) REQUIRES(mutex_);
  static void GiveBack(const Memory& memory);
  bool IsOn(int device, const std::vector<Id>& ids) const REQUIRES(mutex_);

  base::Mutex mutex_ ACQUIRED_BEFORE(lock_order::kSending);
  arena::VirtualRanges ranges_ GUARDED_BY(mutex_);
};

}  // namespace shim
