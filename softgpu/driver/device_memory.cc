#include "softgpu/driver/device_memory.h"

#include <cassert>
#include <utility>

#include "softgpu/driver/device.h"
#include "softgpu/driver/driver.h"

namespace softgpu {
namespace {

std::shared_ptr<Allocation> Enter(Heap* heap, Allocation::Kind kind, uint64_t bytes) {
  const std::optional<uint64_t> base = heap->Allocate(bytes);
  if (!base) return nullptr;
  std::shared_ptr<Allocation> allocation = std::make_shared<Allocation>();
  allocation->kind = kind;
  allocation->base = *base;
  allocation->bytes = bytes;
  allocation->id = MemoryMap::NextId();
  allocation->heap = heap;
  return allocation;
}

void AddToMap(const std::shared_ptr<Allocation>& allocation) {
  const bool added = Driver::Get().memory_map().Add(allocation);
  assert(added);  // the heap hands out each address once
  static_cast<void>(added);
}

}  // namespace

std::shared_ptr<Allocation> AllocateDeviceMemory(Device* device, Allocation::Kind kind,
                                                 uint64_t bytes, uint64_t context_id) {
  if (bytes > device->memory().total()) return nullptr;
  Charge charge(&device->memory(), Heap::RoundUp(bytes));
  if (!charge.taken()) return nullptr;
  std::shared_ptr<Allocation> allocation = Enter(&device->heap(), kind, bytes);
  if (allocation == nullptr) return nullptr;
  allocation->device = device->ordinal();
  allocation->context_id = context_id;
  allocation->charge = std::move(charge);
  if (kind == Allocation::Kind::kDevice && Driver::Get().config().check) {
    MarkUninitialised(allocation->base, bytes);
  }
  AddToMap(allocation);
  return allocation;
}

std::shared_ptr<Allocation> AllocateHostMemory(Device* device, uint64_t bytes, unsigned flags,
                                               uint64_t context_id) {
  std::shared_ptr<Allocation> allocation =
      Enter(&device->host_heap(), Allocation::Kind::kPinned, bytes);
  if (allocation == nullptr) return nullptr;
  allocation->device = device->ordinal();
  allocation->context_id = context_id;
  allocation->host_flags = flags;
  AddToMap(allocation);
  return allocation;
}

}  // namespace softgpu
