#include "shim/virtual_memory.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <vector>

#include "shim/client.h"
#include "shim/device_memory.h"
#include "shim/send.h"
#include "shim/state.h"
#include "shim/stderr_once.h"
#include "shim/sync.h"

namespace shim {
namespace {

using arena::Range;
using arena::VirtualRanges;

std::atomic<bool> said_second, said_part, said_peer, said_read_only;

// What lay at the addresses before is unmapped only when its last work is complete.
template <class Ask>
CUresult AskTwice(int device, Ask ask) {
  const CUresult result = ask();
  if (result != CUDA_ERROR_INVALID_VALUE) return result;
  const CUresult waited = SynchronizeDevice(device);
  return waited == CUDA_SUCCESS ? ask() : waited;
}

PersistentMemory& Addresses() { return DeviceMemory::Process().persistent(); }

}  // namespace

CUresult RefuseVirtualMemory(std::atomic<bool>& said, const char* what) {
  StderrOnce(said, {what, "; the call fails with 801"});
  return CUDA_ERROR_NOT_SUPPORTED;
}

VirtualMemory& VirtualMemory::Process() {
  static VirtualMemory* const memory = new VirtualMemory;
  return *memory;
}

// --- addresses -----------------------------------------------------------------------------------

CUresult VirtualMemory::Reserve(uint64_t bytes, uint64_t alignment, uint64_t* address) {
  if (bytes == 0 || bytes % arena::kVirtualStep != 0 || (alignment & (alignment - 1)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const std::optional<uint64_t> taken =
      Addresses().TakeAddresses(bytes, std::max(alignment, arena::kVirtualStep));
  if (!taken.has_value()) return CUDA_ERROR_OUT_OF_MEMORY;
  const base::MutexLock lock(&mutex_);
  ranges_.Reserve({*taken, bytes});
  *address = *taken;
  return CUDA_SUCCESS;
}

// The lock is held while the worker is asked, as what lies where may not change meanwhile.
CUresult VirtualMemory::FreeAddresses(uint64_t address, uint64_t bytes) {
  const base::MutexLock lock(&mutex_);
  const Range range{address, bytes};
  if (!ranges_.Unreserve(range)) return CUDA_ERROR_INVALID_VALUE;
  // What still lies there, unmapped, lives on elsewhere.
  if (const CUresult result = MakePlace(range, 0); result != CUDA_SUCCESS) {
    ranges_.Reserve(range);
    return result;
  }
  Addresses().Unmapped({range});
  return CUDA_SUCCESS;
}

bool VirtualMemory::FindReservation(uint64_t address, Range* found) {
  const base::MutexLock lock(&mutex_);
  return ranges_.FindReservation(address, found);
}

// --- physical memory -----------------------------------------------------------------------------

// The memory is the session's from here on, whatever of it is mapped: a program that creates more
// than there is must hear of it now. No other thread has the handle yet, so the lock is free while
// the worker waits for room.
CUresult VirtualMemory::Create(int device, uint64_t bytes, uint64_t note, uint64_t* handle) {
  const std::optional<uint64_t> home = Addresses().TakeAddresses(bytes, arena::kVirtualStep);
  if (!home.has_value()) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint32_t wire = State::WireOfDevice(device);
  Context context;
  context.device = device;
  context.wire = wire;
  Addresses().MakeRoom(context, bytes);
  const CUresult result = AskTwice(
      device, [&] { return Call<ipc::Op::ArenaCreate>(wire, CUdeviceptr{*home}, size_t{bytes}); });
  if (result != CUDA_SUCCESS) {
    Addresses().Unmapped({{*home, bytes}});
    return result;
  }
  const base::MutexLock lock(&mutex_);
  *handle = ranges_.Create(bytes, device, *home, note);
  return CUDA_SUCCESS;
}

// Gives the worker's memory back, after all work submitted so far.
void VirtualMemory::GiveBack(const Memory& memory) {
  const Range place{memory.place, memory.bytes};
  if (memory.at_home) {
    Addresses().Unmap(memory.device, {place});
  } else {
    Post<ipc::Op::ArenaUnmap>(State::WireOfDevice(memory.device), CUdeviceptr{place.base});
  }
}

CUresult VirtualMemory::Release(uint64_t handle) {
  const base::MutexLock lock(&mutex_);
  bool unused = false;
  Memory memory;
  if (!ranges_.Release(handle, &unused, &memory)) return CUDA_ERROR_INVALID_VALUE;
  if (unused) GiveBack(memory);
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::Retain(uint64_t address, uint64_t* handle) {
  const base::MutexLock lock(&mutex_);
  *handle = ranges_.Retain(address);
  return *handle != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult VirtualMemory::Describe(uint64_t handle, int* device, uint64_t* note) {
  const base::MutexLock lock(&mutex_);
  const Memory* const memory = ranges_.Find(handle);
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = memory->device;
  *note = memory->note;
  return CUDA_SUCCESS;
}

// --- mappings ------------------------------------------------------------------------------------

CUresult VirtualMemory::Map(uint64_t address, uint64_t bytes, uint64_t handle) {
  const base::MutexLock lock(&mutex_);
  switch (ranges_.Map({address, bytes}, handle)) {
    case VirtualRanges::MapAnswer::kMapped:
      return CUDA_SUCCESS;
    case VirtualRanges::MapAnswer::kInvalid:
      return CUDA_ERROR_INVALID_VALUE;
    case VirtualRanges::MapAnswer::kSecondMapping:
      return RefuseVirtualMemory(said_second,
                                 "cuMemMap: memory can be mapped at one address at a time");
    case VirtualRanges::MapAnswer::kPartOfMemory:
      return RefuseVirtualMemory(said_part, "cuMemMap: memory can be mapped as a whole only");
  }
  return CUDA_ERROR_INVALID_VALUE;
}

// The worker unmaps nothing: work in flight may still use the mapping, and the next one may be of
// the same memory.
CUresult VirtualMemory::Unmap(uint64_t address, uint64_t bytes) {
  const base::MutexLock lock(&mutex_);
  const std::vector<Id> ids = ranges_.MappedIn({address, bytes});
  if (ids.empty()) return CUDA_ERROR_INVALID_VALUE;
  for (const Id id : ids) {
    Close(id);
    Memory gone;
    if (ranges_.Unmap(id, &gone)) GiveBack(gone);
  }
  return CUDA_SUCCESS;
}

bool VirtualMemory::IsOn(int device, const std::vector<Id>& ids) const {
  for (const Id id : ids) {
    if (ranges_.At(id).device != device) return false;
  }
  return true;
}

CUresult VirtualMemory::SetAccess(uint64_t address, uint64_t bytes, int device,
                                  unsigned long long access) {
  const base::MutexLock lock(&mutex_);
  const std::vector<Id> ids = ranges_.MappedIn({address, bytes});
  if (ids.empty()) return CUDA_ERROR_INVALID_VALUE;
  if (!IsOn(device, ids)) {
    if (access == CU_MEM_ACCESS_FLAGS_PROT_NONE) return CUDA_SUCCESS;
    return RefuseVirtualMemory(said_peer,
                               "cuMemSetAccess: access by another device is not supported");
  }
  if (access == CU_MEM_ACCESS_FLAGS_PROT_READ)
    return RefuseVirtualMemory(said_read_only,
                               "cuMemSetAccess: mappings for reading alone are not supported");
  for (const Id id : ids) {
    if (access == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
      Close(id);
    } else if (const CUresult result = Open(id); result != CUDA_SUCCESS) {
      return result;
    }
  }
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::AccessAt(uint64_t address, int device, unsigned long long* access) {
  const base::MutexLock lock(&mutex_);
  const Id id = ranges_.MappedAt(address);
  if (id == 0) return CUDA_ERROR_INVALID_VALUE;
  const bool open = ranges_.At(id).open && ranges_.At(id).device == device;
  *access = open ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

// From now on copies, fills and library calls may name the mapping.
CUresult VirtualMemory::Open(Id id) {
  const Memory& memory = ranges_.At(id);
  if (memory.open) return CUDA_SUCCESS;
  if (memory.place != memory.mapping) {
    CUresult result = MakePlace({memory.mapping, memory.bytes}, id);
    if (result == CUDA_SUCCESS) result = Move(id, memory.mapping, false);
    if (result != CUDA_SUCCESS) return result;
  }
  Allocation allocation;
  allocation.kind = Allocation::Kind::kMapped;
  allocation.base = memory.mapping;
  allocation.bytes = memory.bytes;
  allocation.device = memory.device;
  State::Process().allocations.Add(allocation);
  ranges_.SetOpen(id, true);
  return CUDA_SUCCESS;
}

void VirtualMemory::Close(Id id) {
  const Memory& memory = ranges_.At(id);
  if (!memory.open) return;
  Allocation removed;
  State::Process().allocations.Remove(memory.mapping, Allocation::Kind::kMapped, &removed);
  ranges_.SetOpen(id, false);
}

// --- places --------------------------------------------------------------------------------------

// Memories that lie in the range from an earlier mapping go to addresses of their own.
CUresult VirtualMemory::MakePlace(Range range, Id but) {
  for (const Id id : ranges_.LyingIn(range, but)) {
    const uint64_t bytes = ranges_.At(id).bytes;
    const std::optional<uint64_t> home = Addresses().TakeAddresses(bytes, arena::kVirtualStep);
    if (!home.has_value()) return CUDA_ERROR_OUT_OF_MEMORY;
    if (const CUresult result = Move(id, *home, true); result != CUDA_SUCCESS) {
      Addresses().Unmapped({{*home, bytes}});
      return result;
    }
  }
  return CUDA_SUCCESS;
}

// The worker moves nothing that the device may be using. Only this wait is one that `why` shows.
CUresult VirtualMemory::Move(Id id, uint64_t place, bool home) {
  const Memory before = ranges_.At(id);
  if (before.used) {
    if (const CUresult waited = SynchronizeDevice(before.device); waited != CUDA_SUCCESS)
      return waited;
  }
  const CUresult result = AskTwice(before.device, [&] {
    return Call<ipc::Op::ArenaMove>(State::WireOfDevice(before.device), CUdeviceptr{before.place},
                                    CUdeviceptr{place});
  });
  if (result != CUDA_SUCCESS) return result;
  if (before.at_home) Addresses().Unmapped({{before.place, before.bytes}});
  ranges_.Moved(id, place, home);
  return CUDA_SUCCESS;
}

// The worker forgets all ranges of the session when its last context ends.
void VirtualMemory::OnContextReset(int device) {
  const base::MutexLock lock(&mutex_);
  std::vector<Memory> gone;
  ranges_.ForgetDevice(device, &gone);
  for (const Memory& memory : gone) {
    Allocation removed;
    if (memory.open)
      State::Process().allocations.Remove(memory.mapping, Allocation::Kind::kMapped, &removed);
    GiveBack(memory);
  }
}

}  // namespace shim
