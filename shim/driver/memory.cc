// Allocation of device and pinned memory, and questions about addresses.
#include "shim/memory.h"

#include <algorithm>

#include "shim/call_trace.h"
#include "shim/client.h"
#include "shim/devices.h"
#include "shim/driver/local.h"
#include "shim/driver/ready.h"
#include "shim/graphs/memory.h"
#include "shim/send.h"
#include "shim/state.h"
#include "shim/stderr_once.h"

namespace local {
namespace {

using shim::Allocation;
using shim::Client;
using shim::Context;
using shim::Memory;
using shim::State;

constexpr size_t kPitchAlignment = 512;

std::atomic<bool> said_io;

CUresult AllocatePinned(void** address, size_t bytes, unsigned flags) {
  Context* context = nullptr;
  uint64_t value = 0;
  if (const CUresult result = State::Process().Current(&context, &value); result != CUDA_SUCCESS)
    return result;
  constexpr unsigned kKnown =
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if (address == nullptr || bytes == 0 || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  return Memory::AllocatePinned(*context, value, bytes, flags, address);
}

}  // namespace

CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  Context* context = nullptr;
  if (const CUresult result = State::Process().Current(&context); result != CUDA_SUCCESS)
    return result;
  size_t free_now = 0, total = 0;
  const CUresult result = shim::Call<ipc::Op::MemInfo>(context->wire, &free_now, &total);
  if (result != CUDA_SUCCESS) return result;
  free_now += shim::DeviceMemory::Process().persistent().cached_bytes(context->device);
  if (free_bytes != nullptr) *free_bytes = std::min(free_now, total);
  if (total_bytes != nullptr) *total_bytes = total;
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  const shim::TracedSpan span(ipc::Op::cuMemAlloc_v2);
  Context* context = nullptr;
  uint64_t value = 0;
  if (const CUresult result = State::Process().Current(&context, &value); result != CUDA_SUCCESS)
    return result;
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t made = 0;
  const CUresult result = Memory::Allocate(*context, value, bytes, {}, &made);
  if (result == CUDA_SUCCESS) *address = made;
  return result;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                            unsigned element_bytes) {
  if (address == nullptr || pitch == nullptr || width == 0 || height == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (element_bytes != 4 && element_bytes != 8 && element_bytes != 16)
    return CUDA_ERROR_INVALID_VALUE;
  const size_t rounded = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
  size_t bytes = 0;
  if (rounded < width || __builtin_mul_overflow(rounded, height, &bytes))
    return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = local::cuMemAlloc_v2(address, bytes);
  if (result == CUDA_SUCCESS) *pitch = rounded;
  return result;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  if (address == 0) return CUDA_SUCCESS;
  Allocation allocation;
  allocation.base = address;
  const CUresult result = Memory::Free(allocation);
  if (result != CUDA_ERROR_INVALID_VALUE) return result;
  if (shim::graphs::GraphMemory::Free(address)) return CUDA_SUCCESS;
  allocation.kind = Allocation::Kind::kManaged;
  return Memory::Free(allocation);
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  const State& state = State::Process();
  Allocation found;
  if (!state.allocations.Find(address, &found) && !state.variables.Find(address, &found)) {
    return CUDA_ERROR_NOT_FOUND;
  }
  if (base != nullptr) *base = found.base;
  if (bytes != nullptr) *bytes = found.bytes;
  return CUDA_SUCCESS;
}

// --- pinned memory -------------------------------------------------------------------------------

CUresult cuMemAllocHost_v2(void** address, size_t bytes) {
  return AllocatePinned(address, bytes, 0);
}
CUresult cuMemHostAlloc(void** address, size_t bytes, unsigned flags) {
  return AllocatePinned(address, bytes, flags);
}

CUresult cuMemFreeHost(void* address) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  Allocation allocation;
  allocation.kind = Allocation::Kind::kPinned;
  allocation.base = reinterpret_cast<uint64_t>(address);
  return Memory::Free(allocation);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device, void* host, unsigned flags) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  const uint64_t address = reinterpret_cast<uint64_t>(host);
  Allocation found;
  if (device == nullptr || flags != 0 || !State::Process().allocations.Find(address, &found)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // Pinned memory has one address on both sides.
  uint64_t base = found.base;
  if (found.kind == Allocation::Kind::kRegistered) {
    // Under unified addressing all registered memory is mapped; here, once a program asks for it.
    if (const CUresult result = Memory::ShareRegistered(found, &base); result != CUDA_SUCCESS)
      return result;
  } else if (found.kind != Allocation::Kind::kPinned) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *device = base + (address - found.base);
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned* flags, void* host) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  Allocation found;
  if (flags == nullptr ||
      !State::Process().allocations.Find(reinterpret_cast<uint64_t>(host), &found) ||
      found.kind != Allocation::Kind::kPinned) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *flags =
      found.flags | CU_MEMHOSTALLOC_DEVICEMAP;  // under unified addressing everything is mapped
  return CUDA_SUCCESS;
}

// Without a device mapping registering is a hint: copies from and to the memory work, through
// staging. With one the pages are exchanged for pages that the worker has, too.
CUresult cuMemHostRegister_v2(void* address, size_t bytes, unsigned flags) {
  Context* context = nullptr;
  uint64_t value = 0;
  if (const CUresult result = State::Process().Current(&context, &value); result != CUDA_SUCCESS)
    return result;
  constexpr unsigned kKnown = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                              CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
  if (address == nullptr || bytes == 0 || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  // Pages of another device can't be exchanged, and the worker can't map them either.
  if ((flags & CU_MEMHOSTREGISTER_IOMEMORY) != 0) {
    shim::StderrOnce(said_io, {"cuMemHostRegister of memory of a device is not supported: the "
                               "worker has no such memory; leave CU_MEMHOSTREGISTER_IOMEMORY out"});
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  Allocation found;
  if (State::Process().allocations.Find(reinterpret_cast<uint64_t>(address), &found)) {
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  Allocation allocation;
  allocation.kind = Allocation::Kind::kRegistered;
  allocation.base = reinterpret_cast<uint64_t>(address);
  allocation.bytes = bytes;
  allocation.context = value;
  allocation.device = context->device;
  allocation.flags = flags;
  // With the flag the pages are exchanged now, where the call can tell of a failure. Without it
  // they are exchanged when the program asks for the address: most registrations are for copies
  // alone.
  if ((flags & CU_MEMHOSTREGISTER_DEVICEMAP) != 0) {
    uint64_t device = 0;
    if (const CUresult result = Memory::ShareRegistered(allocation, &device);
        result != CUDA_SUCCESS) {
      return result;
    }
  }
  State::Process().allocations.Add(allocation);
  return CUDA_SUCCESS;
}
CUresult cuMemHostRegister(void* address, size_t bytes, unsigned flags) {
  return local::cuMemHostRegister_v2(address, bytes, flags);
}

CUresult cuMemHostUnregister(void* address) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  Allocation allocation;
  // A range that the device sees gets pages of its own again (shim/registered_memory.h).
  allocation.kind = Allocation::Kind::kRegistered;
  allocation.base = reinterpret_cast<uint64_t>(address);
  const CUresult result = Memory::Free(allocation);
  return result == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : result;
}

}  // namespace local
