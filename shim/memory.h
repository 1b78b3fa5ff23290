// Device and pinned memory of the session, as the program sees it.
// Thread safety: all functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shim/device_memory.h"
#include "shim/state.h"

namespace shim {

class Memory {
 public:
  // In the current context's device memory.
  static CUresult Allocate(const Context& context, uint64_t context_value, size_t bytes,
                           const DeviceMemory::Order& order, uint64_t* address);
  // Pinned host memory at the same address here and in the worker; flags of cuMemHostAlloc.
  static CUresult AllocatePinned(const Context& context, uint64_t context_value, size_t bytes,
                                 unsigned flags, void** address);
  // Gives registered memory addresses for the device (shim/registered_memory.h), unless it has
  // them.
  static CUresult ShareRegistered(const Allocation& registered, uint64_t* device);
  // Managed memory (shim/managed_memory.h).
  static CUresult AllocateManaged(const Context& context, uint64_t context_value, size_t bytes,
                                  uint64_t* address);
  // Frees what allocations.Remove gave, or OfContext listed.
  static CUresult Free(const Allocation& allocation);
  // Device memory, in the order of a stream.
  static CUresult FreeOrdered(uint64_t address, const Stream& stream);

  // Where an address lies, by its number alone. Managed memory lies where pinned memory does.
  enum class Place { kHost, kPinned, kDevice };
  static Place PlaceOf(uint64_t address);
  // True when [address, address + bytes) lies inside one live device, pinned or managed allocation,
  // or module variable, or in memory that the program has mapped side by side.
  static bool IsLive(uint64_t address, size_t bytes);
};

}  // namespace shim
