#include "shim/shared_memory.h"

#include <bit>
#include <cstring>
#include <optional>
#include <vector>

#include "ipc/calls/limits.h"
#include "shim/arena/virtual_ranges.h"
#include "shim/device_memory.h"
#include "shim/send.h"
#include "shim/stderr_once.h"
#include "shim/sync.h"

namespace shim {
namespace {

constexpr uint64_t kMagic = 0x6369'7079'616e'616c;

// What a handle's bytes are. They come from another program, which may have changed them.
struct Wire {
  uint64_t magic = kMagic;
  ipc::ShareName name;
  uint64_t offset = 0, bytes = 0;  // of the memory in its range
  uint64_t unused = 0;
};
static_assert(sizeof(Wire) == sizeof(CUipcMemHandle));

std::atomic<bool> said_lane, said_elsewhere;

bool FromUntrusted(const CUipcMemHandle& handle, Wire* wire) {
  *wire = std::bit_cast<Wire>(handle);
  const uint64_t range_bytes = wire->name.range_bytes;
  return wire->magic == kMagic && range_bytes % arena::kVirtualStep == 0 &&
         range_bytes <= ipc::limits::kPersistentBytes && wire->bytes != 0 &&
         wire->offset < range_bytes && wire->bytes <= range_bytes - wire->offset;
}

PersistentMemory& Addresses() { return DeviceMemory::Process().persistent(); }

}  // namespace

SharedMemory& SharedMemory::Process() {
  static SharedMemory* const memory = new SharedMemory;
  return *memory;
}

CUresult SharedMemory::Name(const Allocation& memory, CUipcMemHandle* handle) {
  if (memory.kind != Allocation::Kind::kDevice || memory.pool != 0) return CUDA_ERROR_INVALID_VALUE;
  if (memory.ephemeral) {
    StderrOnce(said_lane, {"cuIpcGetMemHandle: this memory lies in a lane, because it dies within "
                           "each iteration; allocate what is shared before the first iteration"});
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  Wire wire;
  CUdeviceptr base = 0;
  const CUresult result = Call<ipc::Op::ShareRange>(State::WireOfDevice(memory.device),
                                                    CUdeviceptr{memory.base}, &wire.name, &base);
  if (result != CUDA_SUCCESS) return result;
  wire.offset = memory.base - base;
  wire.bytes = memory.bytes;
  *handle = std::bit_cast<CUipcMemHandle>(wire);
  return CUDA_SUCCESS;
}

// What lay at the addresses before is unmapped only when its last work is complete.
CUresult SharedMemory::Map(const Context& context, const ipc::ShareName& name, Mapping* mapping) {
  const std::optional<uint64_t> taken =
      Addresses().TakeAddresses(name.range_bytes, arena::kVirtualStep);
  if (!taken.has_value()) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto ask = [&] {
    return Call<ipc::Op::MapShared>(context.wire, &name, CUdeviceptr{*taken});
  };
  CUresult result = ask();
  if (result == CUDA_ERROR_INVALID_VALUE) {
    result = SynchronizeDevice(context.device);
    if (result == CUDA_SUCCESS) result = ask();
  }
  if (result != CUDA_SUCCESS) {
    Addresses().Unmapped({{*taken, name.range_bytes}});
    return result;
  }
  *mapping = {name, *taken, context.device, 0};
  return CUDA_SUCCESS;
}

// The lock is held while the worker is asked: two threads that open one handle make one mapping.
CUresult SharedMemory::Open(const Context& context, uint64_t context_value,
                            const CUipcMemHandle& handle, uint64_t* address) {
  Wire wire;
  if (!FromUntrusted(handle, &wire)) return CUDA_ERROR_INVALID_HANDLE;
  const Token token{wire.name.token[0], wire.name.token[1]};
  const base::MutexLock lock(&mutex_);
  std::map<Token, Mapping>::iterator mapped = mappings_.find(token);
  if (mapped == mappings_.end()) {
    Mapping mapping;
    const CUresult result = Map(context, wire.name, &mapping);
    if (result == CUDA_ERROR_NOT_SUPPORTED) {
      StderrOnce(said_elsewhere, {"cuIpcOpenMemHandle: the memory is of another device, or of a "
                                  "program that another worker serves; run both programs alike"});
    }
    if (result != CUDA_SUCCESS) return result;
    mapped = mappings_.emplace(token, mapping).first;
  } else if (mapped->second.name != wire.name) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  const uint64_t base = mapped->second.address + wire.offset;
  ++mapped->second.opened;
  Opened& opened = opened_[base];
  if (opened.times++ == 0) {
    opened.token = token;
    Allocation allocation;
    allocation.kind = Allocation::Kind::kImported;
    allocation.base = base;
    allocation.bytes = wire.bytes;
    allocation.context = context_value;
    allocation.device = mapped->second.device;
    State::Process().allocations.Add(allocation);
  }
  *address = base;
  return CUDA_SUCCESS;
}

// The worker unmaps the range once all work submitted so far is complete.
void SharedMemory::Leave(const Token& token, unsigned times) {
  const std::map<Token, Mapping>::iterator mapped = mappings_.find(token);
  if (mapped == mappings_.end()) return;
  mapped->second.opened -= times;
  if (mapped->second.opened != 0) return;
  const Mapping gone = mapped->second;
  mappings_.erase(mapped);
  Addresses().Unmap(gone.device, {{gone.address, gone.name.range_bytes}});
}

CUresult SharedMemory::Close(uint64_t address) {
  const base::MutexLock lock(&mutex_);
  const std::map<uint64_t, Opened>::iterator found = opened_.find(address);
  if (found == opened_.end()) return CUDA_ERROR_INVALID_VALUE;
  const Token token = found->second.token;
  if (--found->second.times == 0) {
    opened_.erase(found);
    Allocation removed;
    State::Process().allocations.Remove(address, Allocation::Kind::kImported, &removed);
  }
  Leave(token, 1);
  return CUDA_SUCCESS;
}

void SharedMemory::Forget(uint64_t address) {
  const base::MutexLock lock(&mutex_);
  const std::map<uint64_t, Opened>::iterator found = opened_.find(address);
  if (found == opened_.end()) return;
  const Opened opened = found->second;
  opened_.erase(found);
  Leave(opened.token, opened.times);
}

}  // namespace shim
