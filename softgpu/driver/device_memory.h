// Takes memory from a device's heaps and enters it into the map of addresses.
//
// Thread safety: every function may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>

#include "softgpu/driver/memory_map.h"

namespace softgpu {

class Device;

// Device, managed or module memory: charged to the device's limit. Null when that or the addresses
// are used up. The block lives while it is in the map or somebody holds the result.
std::shared_ptr<Allocation> AllocateDeviceMemory(Device* device, Allocation::Kind kind,
                                                 uint64_t bytes, uint64_t context_id);

// Pinned host memory, readable by kernels of every device. Null when addresses are used up.
std::shared_ptr<Allocation> AllocateHostMemory(Device* device, uint64_t bytes, unsigned flags,
                                               uint64_t context_id);

}  // namespace softgpu
