#include "softgpu/driver/virtual_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "ipc/calls/limits.h"
#include "softgpu/driver/error_log.h"

namespace softgpu {
namespace {

constexpr int kReserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

void* MappingPointer(uint64_t address) { return reinterpret_cast<void*>(address); }

// Leaves [address, +bytes) reserved and without memory. In a process that has vm.max_map_count
// mappings, mmap() fails even in place of another mapping. The old mapping then stays, without
// access, until another one replaces it or the range is freed. mprotect() needs no new mapping
// here, but promises nothing: when it fails, too, stray accesses of the host go to the old memory.
void ReplaceByNothing(uint64_t address, uint64_t bytes) {
  if (mmap(MappingPointer(address), bytes, PROT_NONE, kReserve | MAP_FIXED, -1, 0) == MAP_FAILED)
    (void)mprotect(MappingPointer(address), bytes, PROT_NONE);
}

int Protection(unsigned long long access) {
  if (access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return PROT_READ | PROT_WRITE;
  return access == CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ : PROT_NONE;
}

}  // namespace

bool VirtualMemory::ReserveAt(uint64_t hint, uint64_t bytes, bool* in_heap) {
  if (hint < ipc::limits::kWindowBase || hint % Extent::kGranularity != 0) return false;
  if (bytes > ipc::limits::kWindowEnd - hint) return false;
  if (hint >= ipc::limits::kSlotsEnd) {
    *in_heap = true;
    return heap_->ReserveAt(hint, bytes);
  }
  if (bytes > ipc::limits::kSlotsEnd - hint) return false;
  *in_heap = false;
  void* const result =
      mmap(MappingPointer(hint), bytes, PROT_NONE, kReserve | MAP_FIXED_NOREPLACE, -1, 0);
  if (result == MappingPointer(hint)) return true;
  if (result != MAP_FAILED)
    munmap(result, bytes);  // a kernel that doesn't know MAP_FIXED_NOREPLACE
  return false;
}

CUresult VirtualMemory::Reserve(uint64_t bytes, uint64_t align, uint64_t hint, uint64_t* address) {
  if (bytes == 0 || bytes % Extent::kGranularity != 0) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "the size is not a multiple of 2 MiB");
  }
  if ((align & (align - 1)) != 0) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "the alignment is not a power of two");
  }
  align = std::max(align, Extent::kGranularity);
  base::MutexLock lock(&mutex_);
  bool in_heap = true;
  if (hint != 0 && hint % align == 0 && ReserveAt(hint, bytes, &in_heap)) {
    *address = hint;
  } else {
    const std::optional<uint64_t> chosen = heap_->Reserve(bytes, align);
    if (!chosen) return Fail(CUDA_ERROR_OUT_OF_MEMORY, "no address range of this size is free");
    *address = *chosen;
    in_heap = true;
  }
  reservations_[*address] = {bytes, in_heap};
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::Free(uint64_t address, uint64_t bytes) {
  base::MutexLock lock(&mutex_);
  const auto it = reservations_.find(address);
  if (it == reservations_.end() || it->second.bytes != bytes) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "this is not a whole range of cuMemAddressReserve");
  }
  if (!map_->Overlapping(address, bytes).empty()) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "memory is still mapped in this range");
  }
  if (it->second.in_heap) {
    heap_->Unreserve(address, bytes);
  } else {
    munmap(MappingPointer(address), bytes);
  }
  reservations_.erase(it);
  return CUDA_SUCCESS;
}

bool VirtualMemory::Reserved(uint64_t address, uint64_t bytes) const {
  auto it = reservations_.upper_bound(address);
  if (it == reservations_.begin()) return false;
  --it;
  const uint64_t offset = address - it->first;
  return offset <= it->second.bytes && bytes <= it->second.bytes - offset;
}

bool VirtualMemory::FindReservation(uint64_t address, uint64_t* base, uint64_t* bytes) const {
  base::MutexLock lock(&mutex_);
  if (!Reserved(address, 1)) return false;
  const auto it = std::prev(reservations_.upper_bound(address));
  *base = it->first;
  *bytes = it->second.bytes;
  return true;
}

CUresult VirtualMemory::Map(uint64_t address, uint64_t bytes, std::shared_ptr<Extent> extent) {
  if (bytes == 0 || bytes > extent->bytes() || (address | bytes) % Extent::kGranularity != 0) {
    return Fail(CUDA_ERROR_INVALID_VALUE,
                "address and size must be multiples of 2 MiB within the memory");
  }
  base::MutexLock lock(&mutex_);
  if (!Reserved(address, bytes)) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "the range is not reserved by cuMemAddressReserve");
  }
  const std::shared_ptr<Allocation> mapping = std::make_shared<Allocation>();
  mapping->kind = Allocation::Kind::kMapping;
  mapping->base = address;
  mapping->bytes = bytes;
  mapping->device = extent->properties().location.id;
  mapping->id = extent->id();
  mapping->access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  const int descriptor = extent->descriptor();
  mapping->extent = std::move(extent);
  if (!map_->Add(mapping)) return Fail(CUDA_ERROR_INVALID_VALUE, "the range is mapped already");
  if (mmap(MappingPointer(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, descriptor, 0) ==
      MAP_FAILED) {
    map_->Remove(address, [](const Allocation&) { return true; });
    ReplaceByNothing(address, bytes);
    return Fail(CUDA_ERROR_OUT_OF_MEMORY, "the system has no room for another mapping");
  }
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::Unmap(uint64_t address, uint64_t bytes) {
  base::MutexLock lock(&mutex_);
  const std::vector<std::shared_ptr<Allocation>> mappings = map_->Overlapping(address, bytes);
  uint64_t covered = 0;
  for (const std::shared_ptr<Allocation>& mapping : mappings) {
    const bool inside = mapping->base >= address && mapping->end() <= address + bytes;
    if (mapping->kind != Allocation::Kind::kMapping || !inside) {
      return Fail(CUDA_ERROR_INVALID_VALUE, "only whole mappings can be unmapped");
    }
    covered += mapping->bytes;
  }
  if (covered == 0 || covered != bytes) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "not all of the range is mapped");
  }
  for (const std::shared_ptr<Allocation>& mapping : mappings) {
    map_->Remove(mapping->base, [](const Allocation&) { return true; });
  }
  ReplaceByNothing(address, bytes);
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::SetAccess(uint64_t address, uint64_t bytes, unsigned long long access) {
  base::MutexLock lock(&mutex_);
  const std::vector<std::shared_ptr<Allocation>> mappings = map_->Overlapping(address, bytes);
  uint64_t covered = 0;
  for (const std::shared_ptr<Allocation>& mapping : mappings) {
    const bool inside = mapping->base >= address && mapping->end() <= address + bytes;
    if (mapping->kind != Allocation::Kind::kMapping || !inside) {
      return Fail(CUDA_ERROR_INVALID_VALUE, "the range must consist of whole mappings");
    }
    covered += mapping->bytes;
  }
  if (covered == 0 || covered != bytes) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "not all of the range is mapped");
  }
  if (mprotect(MappingPointer(address), bytes, Protection(access)) != 0) {
    return Fail(CUDA_ERROR_OUT_OF_MEMORY, "the system has no room for another mapping");
  }
  for (const std::shared_ptr<Allocation>& mapping : mappings) mapping->access = access;
  return CUDA_SUCCESS;
}

}  // namespace softgpu
