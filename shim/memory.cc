#include "shim/memory.h"

#include <vector>

#include "shim/client.h"
#include "shim/graphs/memory.h"
#include "shim/managed_memory.h"
#include "shim/pinned_ranges.h"
#include "shim/pinned_spare.h"
#include "shim/registered_memory.h"
#include "shim/shared_memory.h"
#include "shim/streams.h"
#include "shim/sync.h"

namespace shim {
namespace {

CUresult FreePinned(const Allocation& allocation) {
  // Freeing host memory really waits: a copy in flight would read what comes to lie there next.
  if (const CUresult result = SynchronizeDevice(allocation.device); result != CUDA_SUCCESS)
    return result;
  return UnmapPinned(State::WireOfDevice(allocation.device),
                     PinnedSpare::Process().Keep({allocation.base, WholePages(allocation.bytes)}));
}

// The program keeps its memory and what is in it, also where the session is lost.
CUresult FreeRegistered(const Allocation& allocation) {
  const std::optional<uint64_t> device =
      RegisteredMemory::Process().DeviceOf(allocation.base, allocation.bytes);
  if (!device.has_value()) return CUDA_SUCCESS;
  const CUresult waited = SynchronizeDevice(allocation.device);
  Allocation alias;
  State::Process().allocations.Remove(*device, Allocation::Kind::kAlias, &alias);
  const CUresult result =
      RegisteredMemory::Process().Unshare(State::WireOfDevice(allocation.device), allocation.base);
  return waited == CUDA_SUCCESS ? result : waited;
}

// What is kept goes before an allocation fails.
CUresult TakePinned(uint32_t wire, size_t bytes, unsigned flags, uint64_t* base) {
  if (bytes <= PinnedSpare::kRangeBytesMax && PinnedSpare::Process().Take(WholePages(bytes), base))
    return CUDA_SUCCESS;
  const CUresult result = MapPinned(wire, bytes, flags, base);
  if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
  const std::vector<PinnedSpare::Range> kept = PinnedSpare::Process().Clear();
  if (kept.empty() || UnmapPinned(wire, kept) != CUDA_SUCCESS) return result;
  return MapPinned(wire, bytes, flags, base);
}

}  // namespace

CUresult Memory::Allocate(const Context& context, uint64_t context_value, size_t bytes,
                          const DeviceMemory::Order& order, uint64_t* address) {
  Allocation allocation;
  allocation.context = context_value;
  if (const CUresult result = DeviceMemory::Process().Allocate(context, bytes, order, &allocation);
      result != CUDA_SUCCESS) {
    return result;
  }
  *address = allocation.base;
  State::Process().allocations.Add(allocation);
  return CUDA_SUCCESS;
}

CUresult Memory::AllocatePinned(const Context& context, uint64_t context_value, size_t bytes,
                                unsigned flags, void** address) {
  uint64_t base = 0;
  if (const CUresult result = TakePinned(context.wire, bytes, flags, &base); result != CUDA_SUCCESS)
    return result;
  Allocation allocation;
  allocation.kind = Allocation::Kind::kPinned;
  allocation.base = base;
  allocation.bytes = bytes;
  allocation.context = context_value;
  allocation.device = context.device;
  allocation.flags = flags;
  State::Process().allocations.Add(allocation);
  *address = reinterpret_cast<void*>(base);
  return CUDA_SUCCESS;
}

CUresult Memory::ShareRegistered(const Allocation& registered, uint64_t* device) {
  RegisteredMemory& memory = RegisteredMemory::Process();
  bool made = false;
  const CUresult result = memory.Share(State::WireOfDevice(registered.device), registered.base,
                                       registered.bytes, device, &made);
  if (result != CUDA_SUCCESS || !made) return result;
  Allocation alias = registered;
  alias.kind = Allocation::Kind::kAlias;
  alias.base = *device;
  State::Process().allocations.Add(alias);
  return CUDA_SUCCESS;
}

CUresult Memory::AllocateManaged(const Context& context, uint64_t context_value, size_t bytes,
                                 uint64_t* address) {
  Allocation allocation;
  allocation.kind = Allocation::Kind::kManaged;
  allocation.bytes = bytes;
  allocation.context = context_value;
  allocation.device = context.device;
  const CUresult result =
      ManagedMemory::Process().Allocate(context.wire, context.device, bytes, &allocation.block);
  if (result != CUDA_SUCCESS) return result;
  allocation.base = allocation.block.address;
  State::Process().allocations.Add(allocation);
  *address = allocation.base;
  return CUDA_SUCCESS;
}

CUresult Memory::Free(const Allocation& allocation) {
  Allocation removed;
  if (!State::Process().allocations.Remove(allocation.base, allocation.kind, &removed)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  switch (removed.kind) {
    case Allocation::Kind::kDevice:
      DeviceMemory::Process().Free(removed, arena::kAnyStream);
      return CUDA_SUCCESS;
    case Allocation::Kind::kPinned:
      return FreePinned(removed);
    case Allocation::Kind::kManaged:
      return ManagedMemory::Process().Free(removed);
    case Allocation::Kind::kGraph:
      graphs::GraphMemory::Forget(removed.base);
      DeviceMemory::Process().Free(removed, arena::kAnyStream);
      return CUDA_SUCCESS;
    case Allocation::Kind::kRegistered:
      return FreeRegistered(removed);
    case Allocation::Kind::kImported:
      SharedMemory::Process().Forget(removed.base);
      return CUDA_SUCCESS;
    case Allocation::Kind::kAlias:
    case Allocation::Kind::kVariable:
    case Allocation::Kind::kMapped:
      return CUDA_SUCCESS;
  }
  return CUDA_SUCCESS;
}

CUresult Memory::FreeOrdered(uint64_t address, const Stream& stream) {
  Allocation removed;
  if (!State::Process().allocations.Remove(address, Allocation::Kind::kDevice, &removed))
    return CUDA_ERROR_INVALID_VALUE;
  DeviceMemory::Process().Free(removed, Streams::FenceSlot(stream));
  return CUDA_SUCCESS;
}

Memory::Place Memory::PlaceOf(uint64_t address) {
  const uint64_t offset = address - Client::Process().arena_base();
  if (offset < ipc::limits::kDeviceArenaBytes) return Place::kDevice;
  if (offset < ipc::limits::kSlotBytes) return Place::kPinned;
  const Allocations& variables = State::Process().variables;
  Allocation found;
  return !variables.empty() && variables.Find(address, &found) ? Place::kDevice : Place::kHost;
}

bool Memory::IsLive(uint64_t address, size_t bytes) {
  const State& state = State::Process();
  Allocation found;
  if (!state.allocations.Find(address, &found) && !state.variables.Find(address, &found))
    return false;
  uint64_t length = found.bytes - (address - found.base);
  // What the program has mapped side by side is one range to it.
  while (length < bytes && found.kind == Allocation::Kind::kMapped) {
    if (!state.allocations.Find(address + length, &found)) return false;
    length += found.bytes;
  }
  return bytes <= length;
}

}  // namespace shim
